// Defines the methods for the outbox.

import type { Route } from "../../core/shapes/route.ts";
import { about, declared, flag, list, named, number, type Of, object, oneOf, text } from "../schema.ts";
import { ADMIN, count, cursor, deliveryState, idempotencyKey, type MethodSpec, name } from "./parts.ts";

const ONE_DELIVERY = object({ id: about(name, "Id of the delivery.") }, { idempotencyKey });

const DELIVERY = named(
  "DeliveryRow",
  "A row of the outbox.",
  object(
    {
      id: text(),
      sessionKey: text(),
      kind: about(
        oneOf("announce", "send", "hook"),
        "`hook`: an event for a program. `text` is the body of the request.",
      ),
      route: declared<Route>("Route"),
      text: text(),
      state: deliveryState,
      attempts: number(),
      attemptOpen: flag("True while an attempt is in progress."),
      partsSent: number(),
      nextAttemptAt: number(),
      createdAt: number(),
      giveUpAt: about(number(), "Time after which a failed attempt is not repeated."),
    },
    {
      runId: text(),
      textTruncated: flag("True if the text was cut to `maxChars`."),
      code: text(),
      error: text(),
      settledAt: number(),
      dismissedAt: number(),
    },
  ),
);
export type DeliveryRow = Of<typeof DELIVERY>;

const SETTLED = object({ ok: oneOf(true), delivery: DELIVERY });

export const DELIVERY_METHODS = {
  "deliveries.list": {
    scope: ADMIN,
    summary: "Lists the deliveries in the outbox, newest first: texts to people and events to programs.",
    params: object(
      {},
      {
        state: about(deliveryState, "Returns only deliveries in this state."),
        sessionKey: about(name, "Returns only deliveries of this session, which may have been deleted."),
        includeDismissed: flag("Includes failed deliveries that an operator has dismissed."),
        maxChars: about(
          count(1),
          "Maximum length of a text. Longer texts are cut, and `textTruncated` is set.",
        ),
        limit: about(count(1), "Maximum number of rows. Default 100, at most 1000."),
        cursor,
      },
    ),
    result: object({ count: number(), deliveries: list(DELIVERY, "Newest first.") }, { nextCursor: text() }),
    errors: ["invalid_session_key"],
  },
  "deliveries.retry": {
    scope: ADMIN,
    summary: "Retries a failed delivery.",
    params: ONE_DELIVERY,
    result: SETTLED,
    errors: ["delivery_not_found", "delivery_state"],
    events: ["deliveries"],
  },
  "deliveries.dismiss": {
    scope: ADMIN,
    summary: "Dismisses a failed delivery, so that it is no longer reported.",
    params: ONE_DELIVERY,
    result: SETTLED,
    errors: ["delivery_not_found", "delivery_state"],
    events: ["deliveries"],
  },
} as const satisfies Record<string, MethodSpec>;
