// Owns the methods about the outbox.

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
        "`hook`: an event for a program; its text is the body of the request.",
      ),
      route: declared<Route>("Route"),
      text: text(),
      state: deliveryState,
      attempts: number(),
      attemptOpen: flag("An attempt is under way."),
      partsSent: number(),
      nextAttemptAt: number(),
      createdAt: number(),
    },
    {
      runId: text(),
      textTruncated: flag("The text was cut to the requested `maxChars`."),
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
    summary: "Lists the outbox, newest first: texts to people, and events to programs.",
    params: object(
      {},
      {
        state: about(deliveryState, "Only deliveries in this state."),
        sessionKey: about(name, "Only deliveries of this session, even if it was deleted."),
        includeDismissed: flag("Also failed deliveries that an operator has dismissed."),
        maxChars: about(count(1), "Cuts longer texts, and sets `textTruncated`."),
        limit: about(count(1), "Most rows. Default 100, at most 1000."),
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
    summary: "Dismisses a failed delivery: it is no longer reported.",
    params: ONE_DELIVERY,
    result: SETTLED,
    errors: ["delivery_not_found", "delivery_state"],
    events: ["deliveries"],
  },
} as const satisfies Record<string, MethodSpec>;
