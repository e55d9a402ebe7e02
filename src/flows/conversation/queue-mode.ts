// Handles a message that arrives while another run of the session executes.
// QM1: in every mode, each message is accepted and gets its position in the lane (I2, I3).
// QM2: if the mode ends the current run, the transaction that accepts the message also ends that run, but
//      only if the message is new.

import { interruptedBy, maySteer } from "../../core/rules/queue-mode.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import type { QueueMode } from "../../core/shapes/settings/channels.ts";
import type { Accepted, AcceptRequest } from "../../engine/run/accept.ts";
import type { Acceptor } from "../../engine/run/finish.ts";
import type { Unit } from "../../engine/unit.ts";
import { holdForAbort, holdSessions } from "../../store/locks.ts";
import { activeRuns } from "../../store/queries/runs/runs.ts";

/** Accepts a message by the queue mode of its account. On a failure the whole transaction is rolled back. */
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

/**
 * Marks the message as steering: the current run reads it between two steps. If the run ends first, the
 * message becomes the next run.
 */
async function steer(engine: Acceptor, unit: Unit, request: AcceptRequest): Promise<Result<Accepted>> {
  const { sessionKey, route, input } = request;
  await holdSessions(unit.tx, [sessionKey]);
  if (!maySteer(await activeRuns(unit.tx, sessionKey), route)) return engine.acceptIn(unit, request);
  return engine.acceptIn(unit, { ...request, input: { ...input, steer: true } });
}

async function interrupt(engine: Acceptor, unit: Unit, request: AcceptRequest): Promise<Result<Accepted>> {
  const { sessionKey, route } = request;
  // Locks all sessions that the abort affects before the lane itself is locked, to keep the order of locks.
  await holdForAbort(unit.tx, sessionKey);
  const run = interruptedBy(await activeRuns(unit.tx, sessionKey), route);
  const accepted = await engine.acceptIn(unit, request);
  if (run === undefined || !accepted.ok || !accepted.value.fresh) return accepted;
  await engine.abortIn(unit, { sessionKey, runId: run.runId });
  return ok({ ...accepted.value, queuedBehind: accepted.value.queuedBehind - 1 });
}
