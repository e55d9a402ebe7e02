// Owns the params of the methods about the outbox.

import {
  ADMIN,
  about,
  count,
  cursor,
  flag,
  idempotencyKey,
  type MethodSpec,
  name,
  object,
} from "./shapes.ts";

const ONE_DELIVERY = object({ id: about(name, "Which delivery."), idempotencyKey }, ["id"]);

export const DELIVERY_METHODS = {
  "deliveries.list": {
    scope: ADMIN,
    does: "Lists the outbox, newest first: texts to people, and events to programs.",
    params: object(
      {
        state: about({ enum: ["pending", "sent", "failed", "skipped"] }, "Only deliveries in this state."),
        sessionKey: about(name, "Only deliveries of this session, even if it was deleted."),
        includeDismissed: about(flag, "Also failed deliveries that an operator has dismissed."),
        maxChars: about(count(1), "Cuts longer texts, and sets `textTruncated`."),
        limit: about(count(1), "Most rows. Default 100, at most 1000."),
        cursor,
      },
      [],
    ),
    ignored: [],
    fails: ["invalid_session_key"],
  },
  "deliveries.retry": {
    scope: ADMIN,
    does: "Retries a failed delivery.",
    params: ONE_DELIVERY,
    ignored: [],
    fails: ["delivery_not_found", "delivery_state"],
    causes: ["deliveries"],
  },
  "deliveries.dismiss": {
    scope: ADMIN,
    does: "Dismisses a failed delivery: it is no longer reported.",
    params: ONE_DELIVERY,
    ignored: [],
    fails: ["delivery_not_found", "delivery_state"],
    causes: ["deliveries"],
  },
} as const satisfies Record<string, MethodSpec>;
