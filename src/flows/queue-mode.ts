// Owns what becomes of a message that comes to a session while another run is under way there.
// QM1: every message is accepted and has its place in the lane, whatever the mode (I2, I3).
// QM2: a run is ended for a message by the unit that accepts the message, and only if it is a new one.

import type { QueueMode } from "../core/channel-settings.ts";
import { ok, type Result } from "../core/errors.ts";
import { interruptedBy, maySteer } from "../core/queue-mode.ts";
import type { Accepted, AcceptRequest } from "../engine/accept.ts";
import type { Acceptor } from "../engine/finish.ts";
import type { Unit } from "../engine/unit.ts";
import { holdForAbort, holdSessions } from "../store/locks.ts";
import { activeRuns } from "../store/runs.ts";

/** Accepts a message by the mode of the account that it came in at. A failure undoes the whole unit. */
export async function acceptByMode(
  engine: Acceptor,
  unit: Unit,
  request: AcceptRequest,
  mode: QueueMode,
): Promise<Result<Accepted>> {
  switch (mode) {
    case "followup":
      return engine.acceptIn(unit, request);
    case "steer":
      return steer(engine, unit, request);
    case "interrupt":
      return interrupt(engine, unit, request);
  }
}

/** Marked only; the run under way takes it over between two steps, or ends before, and it is the next one. */
async function steer(engine: Acceptor, unit: Unit, request: AcceptRequest): Promise<Result<Accepted>> {
  const { sessionKey, route, input } = request;
  await holdSessions(unit.tx, [sessionKey]);
  if (!maySteer(await activeRuns(unit.tx, sessionKey), route)) return engine.acceptIn(unit, request);
  return engine.acceptIn(unit, { ...request, input: { ...input, steer: true } });
}

async function interrupt(engine: Acceptor, unit: Unit, request: AcceptRequest): Promise<Result<Accepted>> {
  const { sessionKey, route } = request;
  // Before the lane itself, which is one of them: the order in which locks are taken.
  await holdForAbort(unit.tx, sessionKey);
  const run = interruptedBy(await activeRuns(unit.tx, sessionKey), route);
  const accepted = await engine.acceptIn(unit, request);
  if (run === undefined || !accepted.ok || !accepted.value.fresh) return accepted;
  await engine.abortIn(unit, { sessionKey, runId: run.runId });
  return ok({ ...accepted.value, queuedBehind: accepted.value.queuedBehind - 1 });
}
