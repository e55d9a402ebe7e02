// Owns the methods about the outbox.

import { about, flag, object, oneOf } from "../schema.ts";
import { ADMIN, count, cursor, idempotencyKey, type MethodSpec, name } from "./parts.ts";

const ONE_DELIVERY = object({ id: about(name, "Which delivery.") }, { idempotencyKey });

export const DELIVERY_METHODS = {
  "deliveries.list": {
    scope: ADMIN,
    summary: "Lists the outbox, newest first: texts to people, and events to programs.",
    params: object(
      {},
      {
        state: about(oneOf("pending", "sent", "failed", "skipped"), "Only deliveries in this state."),
        sessionKey: about(name, "Only deliveries of this session, even if it was deleted."),
        includeDismissed: about(flag, "Also failed deliveries that an operator has dismissed."),
        maxChars: about(count(1), "Cuts longer texts, and sets `textTruncated`."),
        limit: about(count(1), "Most rows. Default 100, at most 1000."),
        cursor,
      },
    ),
    errors: ["invalid_session_key"],
  },
  "deliveries.retry": {
    scope: ADMIN,
    summary: "Retries a failed delivery.",
    params: ONE_DELIVERY,
    errors: ["delivery_not_found", "delivery_state"],
    events: ["deliveries"],
  },
  "deliveries.dismiss": {
    scope: ADMIN,
    summary: "Dismisses a failed delivery: it is no longer reported.",
    params: ONE_DELIVERY,
    errors: ["delivery_not_found", "delivery_state"],
    events: ["deliveries"],
  },
} as const satisfies Record<string, MethodSpec>;
