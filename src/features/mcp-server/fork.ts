// The tool `sessions_fork` of an operator's MCP clients. A client that acts as a session does not have it.

import type { AccessContext } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { createGate } from "../../access/token.ts";
import { type ToolResultOf, toolSpec } from "../../contract/tools.ts";
import { optional } from "../../core/optional.ts";
import { hasScope } from "../../core/rules/scopes.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import { KEY_CHARS_MAX } from "../../core/shapes/session-key.ts";
import type { ToolSpec } from "../../core/shapes/tool.ts";
import { type Forked, forkSession } from "../../flows/session/fork.ts";
import type { BasicDeps } from "../../gateway/call.ts";
import { answeredOnce, callUnder } from "../../gateway/dispatch.ts";
import { readArguments, textLimit } from "../../tools/arguments.ts";
import type { McpClient } from "./client.ts";

const MESSAGE_ID_CHARS_MAX = 200;

export const FORK_TOOL: ToolSpec = toolSpec("sessions_fork");

const LIMITS = { sessionKey: textLimit(KEY_CHARS_MAX), at: textLimit(MESSAGE_ID_CHARS_MAX) };

/** Returns whether the client may fork sessions. */
export function mayFork({ viewer }: McpClient): boolean {
  return viewer.kind === "operator" && viewer.as === undefined && hasScope(viewer.scopes, "operator.write");
}

type ForkResult = ToolResultOf<"sessions_fork">;

function resultOf({ session, point, leftBehind }: Forked): ForkResult {
  const { key, sessionId } = session;
  return { status: "ok", sessionKey: key, sessionId, at: point.messageId, leftBehind };
}

/** Executes a call once. A client that may not fork gets an error. */
export async function forkAs(
  { engine, settings, world }: BasicDeps,
  { viewer, caller }: McpClient,
  { callId, arguments: given }: { readonly callId: string; readonly arguments: unknown },
  signal: AbortSignal,
): Promise<Result<ForkResult>> {
  const args = await readArguments(FORK_TOOL.parameters, given, LIMITS);
  if (!args.ok) return args;
  const { sessionKey, at, label } = args.value as { sessionKey: string; at: string; label?: string };
  const access: AccessContext = { db: engine.store.db, settings };
  const read = await resolveSession(access, viewer, "read", { sessionKey });
  if (!read.ok) return read;
  const origin = await resolveSession(access, viewer, "send", { sessionKey: read.value.key });
  if (!origin.ok) return origin;
  const sees = createGate(settings, caller, "list");
  const own = callUnder(callId, caller, FORK_TOOL.name, args.value);
  return answeredOnce({ engine, world }, signal, own, async (remember) => {
    const forked = await forkSession({ engine, settings }, viewer, origin.value, {
      at,
      sees,
      ...optional({ label }),
      also: (unit, made) => remember(unit, resultOf(made)),
    });
    return forked.ok ? ok(resultOf(forked.value)) : forked;
  });
}
