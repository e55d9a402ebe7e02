// Applies a pass, the token with which an ACP agent's program calls its session's tools: the caller acts as
// the session and can see the same sessions. A call is part of the session's running run; without a running
// run it is refused.

import { sessionViewer } from "../access/access.ts";
import type { SpawnChain } from "../core/rules/sandbox-policy.ts";
import { identityOf, type Viewer } from "../core/rules/visibility.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Session } from "../core/shapes/session.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { ToolCallRequest } from "../core/shapes/tool.ts";
import { getSession } from "../store/queries/sessions/sessions.ts";
import type { Db } from "../store/sql.ts";
import { callTool, type ToolContext } from "../tools/catalog.ts";
import type { ActiveRun, Passes } from "../tools/passes.ts";
import type { ToolResult } from "../tools/tool.ts";
import type { Caller } from "./auth.ts";

/** Returns the session of a pass. `named`: the session in the call, which must be the session of the pass. */
export async function sessionOfPass(
  db: Db,
  actsAs: string,
  named: string | undefined,
): Promise<Result<Session>> {
  const session = await getSession(db, actsAs);
  if (session === undefined) return fail("session_not_found", `session ${actsAs} no longer exists`);
  if (named === undefined || named === actsAs || named === session.sessionId) return ok(session);
  return fail("not_visible", `this token is valid for session ${actsAs} only`);
}

/**
 * Returns the viewer for a `caller` that acts as the first session of the chain. An operator may do only the
 * things that its token and the session may both do.
 */
export function viewerAs(caller: Caller, token: Viewer, chain: SpawnChain, settings: Settings): Viewer {
  if (caller.actsAs !== undefined) return sessionViewer(chain, settings);
  return token.kind === "operator" ? { ...token, as: identityOf(chain, settings) } : token;
}

/** Returns the run to which a call with a pass belongs, or undefined if the caller uses no pass. */
export function runOfPass(
  passes: Pick<Passes, "runOf"> | undefined,
  caller: Caller,
): Result<ActiveRun | undefined> {
  if (caller.actsAs === undefined) return ok(undefined);
  const run = passes?.runOf(caller.actsAs);
  if (run !== undefined) return ok(run);
  return fail("run_aborted", `session ${caller.actsAs} has no active run: its tools work only during a run`);
}

/**
 * Runs a call like a tool call of the run's model. The call counts as part of the run's chain, and the run
 * releases its slot while the call waits.
 */
export async function callInRun(
  tool: ToolContext,
  request: ToolCallRequest,
  inHand: ActiveRun | undefined,
): Promise<ToolResult> {
  if (inHand === undefined) return callTool(tool, request);
  const { run, wait, duringCall } = inHand;
  const signal = AbortSignal.any([tool.signal, inHand.signal]);
  // The session was read for this call.
  wait.addLabels(tool.session.labels);
  return duringCall(() => callTool({ ...tool, signal, run, wait }, request));
}
