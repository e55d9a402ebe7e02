// Compaction on request: a run of the session that only summarises its older messages.

import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { RunInput } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { findAgent, type Settings } from "../../core/shapes/settings/settings.ts";

/** The input of such a run. Its text is in the transcript. */
export const COMPACT_INPUT = { text: "/compact", compact: true } as const satisfies RunInput;

/** Fails for an agent that is a program or is elsewhere, because the gateway does not call its model. */
export function mayCompact(settings: Settings, { agentId }: Session): Result<void> {
  if (findAgent(settings, agentId)?.runtime === undefined) return ok(undefined);
  return fail("invalid_argument", `agent "${agentId}" manages the context of its model itself`);
}
