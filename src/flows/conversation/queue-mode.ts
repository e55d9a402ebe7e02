// Handles a message that arrives while another run of the session is under way.
// QM1: every message is accepted and has its position in the lane, in any mode (I2, I3).
// QM2: the transaction that accepts a message ends the current run for it, and only if the message is new.

import { interruptedBy, maySteer } from "../../core/rules/queue-mode.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import type { QueueMode } from "../../core/shapes/settings/channels.ts";
import type { Accepted, AcceptRequest } from "../../engine/run/accept.ts";
import type { Acceptor } from "../../engine/run/finish.ts";
import type { Unit } from "../../engine/unit.ts";
import { holdForAbort, holdSessions } from "../../store/locks.ts";
import { activeRuns } from "../../store/queries/runs/runs.ts";

/** Accepts a message by the mode of its account. A failure undoes the whole transaction. */
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

/** Only marks the message: the current run reads it between two steps; otherwise it becomes the next run. */
async function steer(engine: Acceptor, unit: Unit, request: AcceptRequest): Promise<Result<Accepted>> {
  const { sessionKey, route, input } = request;
  await holdSessions(unit.tx, [sessionKey]);
  if (!maySteer(await activeRuns(unit.tx, sessionKey), route)) return engine.acceptIn(unit, request);
  return engine.acceptIn(unit, { ...request, input: { ...input, steer: true } });
}

async function interrupt(engine: Acceptor, unit: Unit, request: AcceptRequest): Promise<Result<Accepted>> {
  const { sessionKey, route } = request;
  // Locked before the lane itself, which is one of them, to keep the order of locks.
  await holdForAbort(unit.tx, sessionKey);
  const run = interruptedBy(await activeRuns(unit.tx, sessionKey), route);
  const accepted = await engine.acceptIn(unit, request);
  if (run === undefined || !accepted.ok || !accepted.value.fresh) return accepted;
  await engine.abortIn(unit, { sessionKey, runId: run.runId });
  return ok({ ...accepted.value, queuedBehind: accepted.value.queuedBehind - 1 });
}
