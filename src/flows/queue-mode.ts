// Owns what becomes of a message that comes to a session while another run is under way there.
// QM1: every message is accepted and has its place in the lane, whatever the mode (I2, I3).

import type { QueueMode } from "../core/channel-settings.ts";
import type { Result } from "../core/errors.ts";
import type { Accepted, AcceptRequest } from "../engine/accept.ts";
import type { Acceptor } from "../engine/finish.ts";
import type { Unit } from "../engine/unit.ts";

/** Accepts a message by the mode of the account that it came in at. A failure undoes the whole unit. */
export async function acceptByMode(
  engine: Acceptor,
  unit: Unit,
  request: AcceptRequest,
  _mode: QueueMode,
): Promise<Result<Accepted>> {
  return engine.acceptIn(unit, request);
}
