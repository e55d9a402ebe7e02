// Accepts messages of a person or a program to a session: `chat.send`, `agent`, the terminal. Send policy,
// route and acceptance are decided here for all of them. Only these messages change a session's route (I10).

import { optional } from "../../core/optional.ts";
import { sendVerdict } from "../../core/rules/send-policy.ts";
import { fail, type Result } from "../../core/shapes/errors.ts";
import type { ImageBlock } from "../../core/shapes/message.ts";
import type { Route, Session } from "../../core/shapes/session.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Accepted } from "../../engine/run/accept.ts";
import type { Unit } from "../../engine/unit.ts";
import { updateSession } from "../../store/queries/sessions/sessions.ts";
import { leaveVerdict } from "../delivery/destination.ts";

export interface DirectMessage {
  readonly session: Session;
  readonly text: string;
  readonly images?: readonly ImageBlock[];
  readonly senderName?: string;
  /** Thinking level of this run only. */
  readonly thinking?: string;
  /** Appended to the system prompt, for this run only. */
  readonly extraContext?: string;
  /** The idempotency key. Default: a new id. */
  readonly runId?: string;
  /** The owner of the idempotency key. */
  readonly askedBy?: string;
  /** Aborts the run this long after it started. Default 0: never. */
  readonly timeoutMs?: number;
  /** Where the writer reads the answer; becomes the session's route. Absent: the route stays. */
  readonly route?: Route;
  /** An additional place for the answer, besides the transcript; the session's route stays as it is. */
  readonly deliverTo?: Route;
  /** Called first in the accepting transaction: makes the session for its first message. */
  readonly before?: (unit: Unit) => Promise<Result<void>>;
  /** Called in the accepting transaction, so that the same request gets the same answer after a crash. */
  readonly remember?: (unit: Unit, accepted: Accepted) => Promise<void>;
}

/** Accepts a message of a person or a program. */
export async function sendDirect(
  parts: { engine: Engine; settings: Settings },
  message: DirectMessage,
): Promise<Result<Accepted>> {
  const { engine } = parts;
  const open = engine.accepting();
  if (!open.ok) return open;
  const verdict = sendVerdict(parts.settings, message.session);
  if (!verdict.allowed) return fail("send_denied", verdict.error);
  const { text, images, senderName, thinking, extraContext, runId, askedBy, timeoutMs } = message;
  const { deliverTo, route: place = deliverTo } = message;
  return engine.commit(async (unit): Promise<Result<Accepted>> => {
    if (deliverTo !== undefined) {
      const leaves = await leaveVerdict(unit.tx, parts.settings, message.session, deliverTo);
      if (!leaves.allowed) return fail("send_denied", leaves.error);
    }
    const ready = await message.before?.(unit);
    if (ready?.ok === false) return ready;
    const accepted = await engine.acceptIn(unit, {
      sessionKey: message.session.key,
      input: { text, ...optional({ images, senderName, thinking, context: extraContext }) },
      ...optional({ runId, askedBy, timeoutMs, route: place }),
    });
    if (!accepted.ok) return accepted;
    if (message.route !== undefined && accepted.value.fresh) {
      await updateSession(unit.tx, message.session.key, { lastRoute: message.route });
    }
    await message.remember?.(unit, accepted.value);
    return accepted;
  });
}
