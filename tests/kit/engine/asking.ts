// Asks for permission during a scripted run, in the same way as the connection to an ACP agent.

import type { PermissionDecision } from "../../../src/core/shapes/permission.ts";
import { agentIdInKey } from "../../../src/core/shapes/session-key.ts";
import type { Engine } from "../../../src/engine/engine.ts";
import type { LaneHandle } from "../../../src/engine/run/execution.ts";
import { askPermission, type PermissionRequest } from "../../../src/flows/permission.ts";

interface Asked {
  readonly title: string;
  readonly kind?: string;
  readonly rawInput?: unknown;
  /** Key of the session that asks. Default: the session of the run. */
  readonly sessionKey?: string;
  /** A command that may be allowed for longer than once. */
  readonly about?: PermissionRequest["about"];
  /** A question of an MCP server. */
  readonly form?: PermissionRequest["form"];
  /** Time until the request expires. Default: ten minutes. */
  readonly askMs?: number;
}

/** Asks for permission in a run, and resolves with the owner's decision. */
export async function askIn(
  { engine }: { engine: Engine },
  { run, wait, signal, log }: LaneHandle,
  { title, kind, rawInput, about, form, sessionKey = run.sessionKey, askMs = 600_000 }: Asked,
): Promise<PermissionDecision> {
  const { runId, attempt } = run;
  const agentId = agentIdInKey(sessionKey) ?? "main";
  const longer = about === undefined ? {} : { about, scopes: ["once", "session", "always"] as const };
  const question = form && { form, scopes: form.fields.length === 0 ? (["once"] as const) : [] };
  const asked = { sessionKey, runId, attempt, agentId, title, kind, rawInput, askMs, ...longer, ...question };
  const decided = await askPermission({ engine }, asked, { wait, signal, log, keepsSlot: true });
  return decided?.decision ?? "deny";
}
