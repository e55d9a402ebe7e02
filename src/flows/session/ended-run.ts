// Applies a decision on the last turn of a session: a failed turn is retried or dismissed, a question is
// dismissed. A decision is applied once and stored in the row of the turn.

import { optional } from "../../core/optional.ts";
import { sendVerdict } from "../../core/rules/send-policy.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { endsWithResult, PLEASE_CONTINUE, type Run } from "../../core/shapes/run.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { dismissTurn } from "../../store/queries/runs/attention.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";

interface Parts {
  readonly engine: Engine;
  readonly settings: Settings;
}

interface Decision {
  /** Returns whether the caller may send to a session. */
  covers(sessionKey: string): boolean;
  /** Called in the transaction of the decision, to add rows. */
  also(unit: Unit, run: Run): Promise<void>;
}

function refuse(runId: string) {
  return fail("run_not_found", `no run ${quoted(runId, 80)} waits for a decision`, {
    hint: "It may have been dismissed, or another turn followed. The open ones: npx parley-gateway inbox",
  });
}

/**
 * Accepts the message of a failed turn again, and dismisses that turn. Returns the new run. If the caller is
 * a `guest`, the new run counts as one of a guest (`RunInput.guest`).
 */
export async function retryRun(
  { engine, settings }: Parts,
  runId: string,
  { covers, also, guest }: Decision & { readonly guest: boolean },
): Promise<Result<Run>> {
  const open = engine.accepting();
  if (!open.ok) return open;
  const failed = await getRun(engine.store.db, runId);
  const isFailed = failed?.state === "error" || failed?.state === "timeout";
  // The requester of a job or a conversation was notified of the failure, and may ask again itself.
  if (failed === undefined || !isFailed || failed.flow !== undefined || !covers(failed.sessionKey))
    return refuse(runId);
  const session = await getSession(engine.store.db, failed.sessionKey);
  if (session === undefined || session.sessionId !== failed.sessionId) return refuse(runId);
  const verdict = sendVerdict(settings, session);
  if (!verdict.allowed) return fail("send_denied", verdict.error);
  // Nobody waits for calls of the client's tools. The results are given again, since the failed run may not
  // have begun. The transcript takes them once.
  const { takenBy: _, clientTools: __, background: ___, ...said } = failed.input;
  const input = endsWithResult(failed.input) ? { ...said, text: PLEASE_CONTINUE } : said;
  return engine.commit(async (unit): Promise<Result<Run>> => {
    const accepted = await engine.acceptIn(unit, {
      sessionKey: failed.sessionKey,
      input: { ...input, ...optional({ guest: guest || undefined }), retries: (input.retries ?? 0) + 1 },
      timeoutMs: failed.timeoutMs,
      ...optional({ route: failed.route }),
    });
    if (!accepted.ok) return accepted;
    const { run } = accepted.value;
    if (!(await dismissTurn(unit.tx, runId, { at: unit.now, retriedBy: run.runId }))) return refuse(runId);
    await also(unit, run);
    return ok(run);
  });
}

/** Dismisses the last turn of a session. Returns its run. */
export async function dismissRun(
  { engine }: Parts,
  runId: string,
  { covers, also }: Decision,
): Promise<Result<Run>> {
  return engine.commit(async (unit): Promise<Result<Run>> => {
    const run = await getRun(unit.tx, runId);
    if (run === undefined || !covers(run.sessionKey)) return refuse(runId);
    if (!(await dismissTurn(unit.tx, runId, { at: unit.now }))) return refuse(runId);
    unit.publish({ kind: "session", sessionKey: run.sessionKey, change: "state" });
    await also(unit, run);
    return ok(run);
  });
}
