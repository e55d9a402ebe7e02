// Owns what a session's pass means at a door: whose call it is, with whose eyes, and in which run.
// GP1: the caller is the session itself: it sees what the session sees, whatever session it names.
// GP2: a call counts as one of the run that the session has under way; without one there is no call.

import { fail, ok, type Result } from "../core/errors.ts";
import type { SpawnChain } from "../core/sandbox-policy.ts";
import type { Session } from "../core/session.ts";
import type { Settings } from "../core/settings.ts";
import type { ToolCallRequest } from "../core/tool.ts";
import { identityOf, type Viewer } from "../core/visibility.ts";
import { sessionViewer } from "../flows/access.ts";
import { getSession } from "../store/sessions.ts";
import type { Db } from "../store/sql.ts";
import { callTool } from "../tools/catalog.ts";
import type { Passes, RunInHand } from "../tools/passes.ts";
import type { ToolContext, ToolResult } from "../tools/tool.ts";
import type { Caller } from "./auth.ts";

/** The session that a pass is good for. `named`: what the call says; another one than that is refused. */
export async function sessionOfPass(
  db: Db,
  actsAs: string,
  named: string | undefined,
): Promise<Result<Session>> {
  const session = await getSession(db, actsAs);
  if (session === undefined) return fail("session_not_found", `session ${actsAs} does not exist any more`);
  if (named === undefined || named === actsAs || named === session.sessionId) return ok(session);
  return fail("not_visible", `this token is the pass of session ${actsAs} and of no other`);
}

/** Who looks when `caller` acts as the first session of the chain: with an operator, both must be allowed. */
export function viewerAs(caller: Caller, token: Viewer, chain: SpawnChain, settings: Settings): Viewer {
  if (caller.actsAs !== undefined) return sessionViewer(chain, settings);
  return token.kind === "operator" ? { ...token, as: identityOf(chain, settings) } : token;
}

/** The run that a call with a pass belongs to; undefined: it is no pass, and belongs to none. */
export function runOfPass(passes: Passes | undefined, caller: Caller): Result<RunInHand | undefined> {
  if (caller.actsAs === undefined) return ok(undefined);
  const run = passes?.runOf(caller.actsAs);
  if (run !== undefined) return ok(run);
  return fail("run_aborted", `session ${caller.actsAs} has no run under way: its tools work only in one`);
}

/** A call as the run's own model makes it: it counts in its chain, and gives its slot back while it waits. */
export async function callInRun(
  tool: ToolContext,
  request: ToolCallRequest,
  inHand: RunInHand | undefined,
): Promise<ToolResult> {
  if (inHand === undefined) return callTool(tool, request);
  const { run, wait, duringCall } = inHand;
  const signal = AbortSignal.any([tool.signal, inHand.signal]);
  return duringCall(() => callTool({ ...tool, signal, run, wait }, request));
}
