// Decides which sessions know the memory of their agent (MEMORY.md), and how a call changes its text.
// ME1: sessions in which strangers may write, and sub-agents of such sessions, neither read nor write it.
//      Otherwise a group could ask for what the agent learnt in private, or plant instructions.
// ME2: sub-agents only read it.
// ME3: a run of a chain in which a guest wrote (`RunInput.guest`) neither reads nor writes it, so a guest
//      gets it through no sub-agent and no other session either.

import { type Failure, fail, ok, type Result } from "../../shapes/errors.ts";
import { rootKeyOf } from "../../shapes/session-key.ts";
import type { AccountSettings } from "../../shapes/settings/channels.ts";
import { agentOf, outsideKind, type Settings } from "../../shapes/settings/settings.ts";
import { isOwner } from "../inbound-policy.ts";
import { type ChainLink, requesterOf, type SpawnChain } from "../sandbox-policy.ts";
import type { Viewer } from "../visibility.ts";
import { countedText } from "./confirmed.ts";

/** Maximum size of a memory in bytes of UTF-8. */
export const MEMORY_MAX_BYTES = 16 * 1024;

/** Returns whether people whom the operator does not know may write in a direct chat of a main session. */
export function strangersInMain({ channels, session }: Settings): boolean {
  const isOpen = ({ dmPolicy, allowFrom }: AccountSettings): boolean =>
    dmPolicy === "open" || (dmPolicy !== "disabled" && allowFrom.some((entry) => entry.trim() === "*"));
  return session.dmScope === "main" && channels.some(isOpen);
}

/** Returns whether a caller is a guest (ME3), because its token covers only some sessions. */
export function isGuest(viewer: Viewer): boolean {
  return viewer.kind === "operator" && viewer.patterns !== undefined;
}

/** Returns whether strangers have no say in a session, so that what it knows is the owner's. */
export function holdsPrivate(link: ChainLink, settings: Settings): boolean {
  const root = rootKeyOf(link.key);
  // All chats of all channels are in this session.
  if (root?.form === "global" && settings.channels.length > 0) return false;
  if (link.kind === "main") return !strangersInMain(settings);
  switch (root?.form) {
    case "named":
    case "chat":
    case "cron":
    case "subagent":
      return true;
    case "external":
      return root.client !== "openai" && root.client !== "a2a";
    case "dm":
      return isOwner(settings.owners, root.channel, { id: root.peer });
    default:
      return false;
  }
}

/** Returns why strangers may have a say in a session, or undefined if they may not. */
export function openToStrangers(chain: SpawnChain, settings: Settings): string | undefined {
  let link: SpawnChain | "gone" | undefined = chain;
  while (link !== undefined && link !== "gone") {
    if (!holdsPrivate(link[0], settings))
      return "strangers may write in this session or the one that spawned it";
    link = requesterOf(link);
  }
  return link === "gone" ? "the session that spawned this one was deleted" : undefined;
}

/** Returns why the session does not know its agent's memory, or undefined if it does. */
export function withoutMemory(chain: SpawnChain, settings: Settings): string | undefined {
  const { id, memory, runtime } = agentOf(settings, chain[0]);
  if (!memory) return `agents.list[${id}].memory or agents.defaults.memory is false`;
  if (runtime !== undefined) return `${outsideKind(runtime)} keeps its own memory`;
  return openToStrangers(chain, settings);
}

/** Returns why the session may not change its agent's memory, or undefined if it may. */
export function memoryDenied(chain: SpawnChain, settings: Settings): string | undefined {
  const why = withoutMemory(chain, settings);
  if (why !== undefined) return why;
  return chain[0].spawnedBy === undefined ? undefined : "a sub-agent only reads the memory of its agent";
}

/** Returns the text of a memory that counts. `confirmed`: set if changes of the text wait for an owner. */
export function countedMemory(memory: { readonly text: string; readonly confirmed?: string }): string {
  const { text: current, confirmed } = memory;
  return countedText({ current, confirmed, guarded: confirmed !== undefined }).text ?? "";
}

export type MemoryChange =
  | { readonly action: "add"; readonly text: string }
  | { readonly action: "replace"; readonly oldText: string; readonly text: string }
  | { readonly action: "remove"; readonly oldText: string }
  | { readonly action: "set"; readonly text: string };

const occurrence = (problem: string): Failure =>
  fail("invalid_argument", `oldText ${problem} in the memory`, {
    hint: "The action read returns the memory. Give oldText exactly, long enough to occur once.",
  });

function replaceText(memory: string, oldText: string, text: string): Result<string> {
  const at = oldText === "" ? -1 : memory.indexOf(oldText);
  if (at === -1) return occurrence("does not occur");
  if (memory.includes(oldText, at + 1)) return occurrence("occurs more than once");
  return ok(memory.slice(0, at) + text + memory.slice(at + oldText.length));
}

function changedText(memory: string, change: MemoryChange): Result<string> {
  switch (change.action) {
    case "add":
      return ok(memory === "" ? change.text : `${memory}\n${change.text}`);
    case "replace":
      return replaceText(memory, change.oldText, change.text);
    case "remove":
      return replaceText(memory, change.oldText, "");
    case "set":
      return ok(change.text);
  }
}

/** Returns the text of a memory after a change, without surplus empty lines. */
export function changedMemory(memory: string, change: MemoryChange): Result<string> {
  const changed = changedText(memory, change);
  if (!changed.ok) return changed;
  const text = changed.value.replaceAll(/\n{3,}/g, "\n\n").trim();
  const bytes = new TextEncoder().encode(text).length;
  if (bytes <= MEMORY_MAX_BYTES) return ok(text);
  return fail("too_large", `the memory would have ${bytes} bytes; the maximum is ${MEMORY_MAX_BYTES}`, {
    hint: "Remove or shorten what no longer matters.",
  });
}
