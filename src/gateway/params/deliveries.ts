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
    does: "Lists the outbox, newest first: text to people, and news to programs.",
    params: object(
      {
        state: about({ enum: ["pending", "sent", "failed", "skipped"] }, "Only those that stand so."),
        sessionKey: about(name, "Only those of this session, also of one that is gone."),
        includeDismissed: about(flag, "Also failed ones that an operator has put away."),
        maxChars: about(count(1), "Longer texts are cut, and have `textTruncated`."),
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
    does: "Tries a failed delivery again.",
    params: ONE_DELIVERY,
    ignored: [],
    fails: ["delivery_not_found", "delivery_state"],
    causes: ["deliveries"],
  },
  "deliveries.dismiss": {
    scope: ADMIN,
    does: "Puts a failed delivery away: nobody is told of it any more.",
    params: ONE_DELIVERY,
    ignored: [],
    fails: ["delivery_not_found", "delivery_state"],
    causes: ["deliveries"],
  },
} as const satisfies Record<string, MethodSpec>;
