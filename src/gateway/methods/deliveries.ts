// Owns the operator's view of the outbox. DE1: a caller sees and settles a delivery only if the token covers
// its session (I9). Other sessions in the delivery's route or error are left out unless the token covers
// them.

import { operatorKey } from "../../access/access.ts";
import { createGate } from "../../access/token.ts";
import type { DELIVERY_METHODS, DeliveryRow } from "../../contract/methods/deliveries.ts";
import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { optional } from "../../core/optional.ts";
import { visibleOutcome } from "../../core/shapes/chain-step.ts";
import { badCursor, ok, type Result } from "../../core/shapes/errors.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { settleFailed } from "../../flows/delivery/outbox.ts";
import { type Delivery, listDeliveries } from "../../store/queries/channels/deliveries.ts";
import { type BasicDeps, type CallContext, commitAnswer, type Methods } from "../call.ts";

type SettledDelivery = PayloadOf<"deliveries.retry">;

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 1000;
/**
 * Maximum number of outbox pages read to fill one page of the answer. The answer's cursor continues after the
 * last outbox page read.
 */
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
  const { seq: _, text, error: __, ...rest } = delivery;
  const { route, error } = visibleOutcome(delivery, covers);
  const shown = redactor.beginning(text, charsMax);
  return {
    ...rest,
    route,
    text: shown.text,
    ...(!shown.whole ? { textTruncated: true } : {}),
    ...(error === undefined ? {} : { error: redactor.mask(error) }),
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
  // Filters by key, not by session: a deleted session's deliveries are still in the outbox.
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

/** Retries or dismisses a failed delivery that the caller may see. */
async function settle(
  ctx: CallContext<BasicDeps>,
  id: string,
  how: "retry" | "dismiss",
): Promise<Result<SettledDelivery>> {
  const { settings, world } = ctx.deps;
  const covers = createGate(settings, ctx.caller, "deliveries");
  return commitAnswer(ctx, async (unit): Promise<Result<SettledDelivery>> => {
    const settled = await settleFailed(unit, { id, how, covers });
    if (!settled.ok) return settled;
    return ok({ ok: true, delivery: row(settled.value, { redactor: world.redactor, covers }) });
  });
}

export const deliveryMethods: Methods<keyof typeof DELIVERY_METHODS, BasicDeps> = {
  "deliveries.list": { handle: list },
  "deliveries.retry": { handle: (ctx, { id }) => settle(ctx, id, "retry") },
  "deliveries.dismiss": { handle: (ctx, { id }) => settle(ctx, id, "dismiss") },
};
