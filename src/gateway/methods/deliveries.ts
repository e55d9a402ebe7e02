// Owns the operator's view of the outbox.
// DE1: a delivery is seen and settled only by those whose token covers its session (I9). Another session in
// its route or its failure is left out for those whose token does not cover that one.

import { operatorKey } from "../../access/access.ts";
import { createGate } from "../../access/token.ts";
import type { DELIVERY_METHODS, DeliveryRow } from "../../contract/methods/deliveries.ts";
import type { ParamsOf } from "../../contract/methods.ts";
import type { PayloadOf } from "../../contract/payloads.ts";
import { optional } from "../../core/optional.ts";
import { visibleErrorText, visibleRoute } from "../../core/shapes/chain-step.ts";
import { badCursor, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import type { Unit } from "../../engine/unit.ts";
import { publishOutbox } from "../../flows/delivery/outbox.ts";
import {
  type Delivery,
  dismissDelivery,
  getDelivery,
  listDeliveries,
  requeueDelivery,
} from "../../store/queries/channels/deliveries.ts";
import type { CallContext, Methods, SendingDeps } from "../call.ts";

type SettledDelivery = PayloadOf<"deliveries.retry">;

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 1000;
/** Pages of the outbox that are read for one page of the caller's; a cursor continues from there. */
const PAGES_MAX = 10;

/** Whether the caller's token covers a session. */
type Covers = (sessionKey: string) => boolean;

interface RowReader {
  readonly redactor: Redactor;
  readonly covers: Covers;
}

function row(
  delivery: Delivery,
  { redactor, covers }: RowReader,
  charsMax = Number.MAX_SAFE_INTEGER,
): DeliveryRow {
  const { seq: _, text, error, route, ...rest } = delivery;
  const shown = redactor.beginning(text, charsMax);
  return {
    ...rest,
    route: visibleRoute(route, covers),
    text: shown.text,
    ...(!shown.whole ? { textTruncated: true } : {}),
    ...(error === undefined ? {} : { error: redactor.mask(visibleErrorText(error, covers)) }),
  };
}

async function list(
  ctx: CallContext,
  params: ParamsOf<"deliveries.list">,
): Promise<Result<PayloadOf<"deliveries.list">>> {
  const { state, includeDismissed } = params;
  if (params.cursor !== undefined && !/^\d{1,15}$/.test(params.cursor)) {
    return badCursor("deliveries.list");
  }
  // A key, not a session: a deleted session's deliveries are still in the outbox.
  const key =
    params.sessionKey === undefined ? ok(undefined) : operatorKey(ctx.deps.settings, params.sessionKey);
  if (!key.ok) return key;
  const sessionKey = key.value;
  const covered = createGate(ctx.deps.settings, ctx.caller, "deliveries");
  const limit = Math.min(params.limit ?? LIMIT_DEFAULT, LIMIT_MAX);
  const shown: Delivery[] = [];
  let cursor = params.cursor;
  for (let page = 0; page < PAGES_MAX && shown.length < limit; page++) {
    const found = await listDeliveries(ctx.access.db, {
      limit: limit - shown.length,
      ...optional({ state, sessionKey, cursor }),
    });
    for (const delivery of found.rows) {
      if (!covered(delivery.sessionKey)) continue;
      if (delivery.dismissedAt === undefined || includeDismissed === true) shown.push(delivery);
    }
    cursor = found.nextCursor;
    if (cursor === undefined) break;
  }
  return ok({
    count: shown.length,
    deliveries: shown.map((one) =>
      row(one, { redactor: ctx.deps.world.redactor, covers: covered }, params.maxChars),
    ),
    ...optional({ nextCursor: cursor }),
  });
}

/** Applies a change to a failed delivery that the caller may see. */
async function settle(
  ctx: CallContext,
  id: string,
  work: (unit: Unit) => Promise<boolean>,
): Promise<Result<SettledDelivery>> {
  const { engine, settings } = ctx.deps;
  return engine.commit(async (unit): Promise<Result<SettledDelivery>> => {
    const before = await getDelivery(unit.tx, id);
    const covered = createGate(settings, ctx.caller, "deliveries");
    if (before === undefined || !covered(before.sessionKey)) {
      return fail("delivery_not_found", `there is no delivery ${JSON.stringify(id)}`);
    }
    if (!(await work(unit))) {
      const state = before.dismissedAt === undefined ? before.state : "dismissed";
      return fail(
        "delivery_state",
        `only a failed delivery can be retried or dismissed; this one is ${state}`,
      );
    }
    const after = await getDelivery(unit.tx, id);
    const answer = {
      ok: true as const,
      delivery: row(after ?? before, { redactor: ctx.deps.world.redactor, covers: covered }),
    };
    publishOutbox(unit, before, after?.dismissedAt === undefined ? "pending" : "dismissed");
    await ctx.remember(unit, answer);
    return ok(answer);
  });
}

export const deliveryMethods: Methods<keyof typeof DELIVERY_METHODS, SendingDeps> = {
  "deliveries.list": { handle: list },
  "deliveries.retry": {
    handle: (ctx, { id }) =>
      settle(ctx, id, async (unit) => {
        const again = await requeueDelivery(unit.tx, id, unit.now);
        if (again) unit.after(() => ctx.deps.outbound.deliveryQueued());
        return again;
      }),
  },
  "deliveries.dismiss": {
    handle: (ctx, { id }) => settle(ctx, id, (unit) => dismissDelivery(unit.tx, id, unit.now)),
  },
};
