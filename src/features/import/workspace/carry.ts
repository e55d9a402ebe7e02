// Carries the accepted workspaces of a source over: their files into the workspaces of the agents here, and
// their memory into the agents' memory. Nothing that is already here is changed.

import { findAgent, type Settings } from "../../../core/shapes/settings/settings.ts";
import { holdMemory, readMemory, writeMemory } from "../../../store/queries/agent-memory.ts";
import { isInside } from "../../../world/folders.ts";
import type { TrustedSetting } from "../config/trust.ts";
import type { Remarks } from "../remarks.ts";
import type { ImportStore } from "../sessions/write-session.ts";
import { openSourceDir } from "../source-dir.ts";
import { copyFiles, listFiles, missingIn, readSourceMemory } from "./copy.ts";
import type { SourceWorkspace } from "./find.ts";

export interface CarriedWorkspace {
  readonly agentId: string;
  readonly from: string;
  /** The agent's workspace here. */
  readonly to: string;
  /** `linked`: the agent uses the source's folder. `unchanged`: nothing was left to copy. */
  readonly how: "copied" | "linked" | "unchanged";
  readonly files: number;
  /** Names of the files that are in the agent's memory now. Empty if it had a memory already. */
  readonly memory: readonly string[];
}

export const workspaceName = (agentId: string): string => `agents.list.${agentId}.workspace`;

/** Returns the settings that a person must accept before a workspace is used. */
export function workspaceGrants(workspaces: readonly SourceWorkspace[]): TrustedSetting[] {
  return workspaces.map(({ agentId, path, isDelicate }) => ({
    ...{ name: workspaceName(agentId), group: "workspaces", byName: isDelicate },
    text:
      `gives the agent ${agentId} the files of ${path}: instructions, skills and memory` +
      (isDelicate ? ", and whatever else is in that folder" : ""),
  }));
}

interface Carrying {
  readonly settings: Settings;
  readonly store: ImportStore;
  readonly remarks: Remarks;
  readonly nowMs: number;
  /** Names of the settings whose workspace is used where it is. */
  readonly linked: ReadonlySet<string>;
}

/** Writes the memory of an agent that has none. Returns the names of the files in it. */
async function carryMemory(
  agentId: string,
  memory: { text: string; files: readonly string[] },
  { store, nowMs }: Carrying,
): Promise<readonly string[]> {
  const { db, transaction, redactor } = store;
  if (memory.text === "" || (db !== undefined && (await readMemory(db, agentId)).revision > 0)) return [];
  const write = await transaction?.(async (tx) => {
    const before = await holdMemory(tx, agentId, nowMs);
    if (before.revision > 0) return false;
    await writeMemory(tx, agentId, { ...before, text: redactor.mask(memory.text), revision: 1 }, nowMs);
    return true;
  });
  return write === false ? [] : memory.files;
}

async function carry(workspace: SourceWorkspace, carrying: Carrying): Promise<CarriedWorkspace | undefined> {
  const { agentId, path } = workspace;
  const { settings, store, remarks, linked } = carrying;
  const agent = findAgent(settings, agentId);
  const opened = await openSourceDir(path);
  if (agent === undefined || !opened.ok) {
    remarks.note("workspaces of agents that are not configured here, left out", agentId);
    return undefined;
  }
  const { workspace: to } = agent;
  const known = await readSourceMemory(opened.value);
  const memory = await carryMemory(agentId, known, carrying);
  if (memory.length > 0)
    for (const name of known.left)
      remarks.note("memory files without room, which stay in the workspace", name);
  const common = { agentId, from: path, to, memory };
  if (to === path || linked.has(workspaceName(agentId)))
    return { ...common, to: path, how: "linked", files: 0 };
  if (isInside(path, to) || isInside(to, path)) {
    remarks.note("workspaces inside the agent's workspace here, or around it, not copied", agentId);
    return undefined;
  }
  const list = await listFiles(opened.value);
  if (list.isTooLarge) {
    remarks.note("workspaces that are too large to be copied: import them with --link", agentId);
    return undefined;
  }
  for (const name of list.left) remarks.note("links and .git folders of workspaces, not copied", name);
  const missing = await missingIn(to, list);
  const files = store.transaction === undefined ? missing.length : await copyFiles(opened.value, missing, to);
  return { ...common, how: missing.length === 0 ? "unchanged" : "copied", files };
}

/** Carries workspaces over. Without a transaction, only reports what would be carried over. */
export async function carryWorkspaces(
  workspaces: readonly SourceWorkspace[],
  carrying: Carrying,
): Promise<CarriedWorkspace[]> {
  const carried: CarriedWorkspace[] = [];
  for (const workspace of workspaces) {
    const one = await carry(workspace, carrying);
    if (one !== undefined) carried.push(one);
  }
  return carried;
}

/** Returns the names of the workspaces whose files are all here already. */
export async function carriedBefore(
  workspaces: readonly SourceWorkspace[],
  settings: Settings,
): Promise<string[]> {
  const names: string[] = [];
  for (const { agentId, path } of workspaces) {
    const to = findAgent(settings, agentId)?.workspace;
    const opened = await openSourceDir(path);
    if (to === undefined || !opened.ok) continue;
    const isHere = path === to || (await missingIn(to, await listFiles(opened.value))).length === 0;
    if (isHere) names.push(workspaceName(agentId));
  }
  return names;
}
