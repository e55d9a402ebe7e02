// Logs the start and the end of runs, and the result of deliveries. Part of the composition root.
// TR1: a failed run and an undelivered text are logged as warnings, success at level debug. Each process logs
//      only its own runs.

import { optional } from "../core/optional.ts";
import type { LiveEvent } from "../core/shapes/event.ts";
import type { Engine } from "../engine/engine.ts";
import type { Store } from "../store/sql.ts";
import { idsOf, type Log, logging, type World } from "../world.ts";

type Of<K extends LiveEvent["kind"]> = Extract<LiveEvent, { kind: K }>;

function logEnd(log: Log, event: Of<"run_ended">): void {
  const { state, code, error, startedAt, endedAt, usage, flowStep } = event;
  const facts = {
    ...idsOf(event),
    state,
    ...optional({ flowStep }),
    ...(startedAt === undefined ? {} : { ms: endedAt - startedAt }),
    tokens: usage.totalTokens,
    ...optional({ code, why: error }),
  };
  if (state === "ok") log.debug(facts, "a run ended");
  else if (state === "aborted") log.info(facts, "a run was aborted");
  else log.warn(facts, state === "timeout" ? "a run took too long" : "a run failed");
}

/** The event does not contain the chain, so it is read from the run's row, if that still exists. */
async function logDelivery(log: Log, { db }: Store, event: Of<"delivery">): Promise<void> {
  const { deliveryId, sessionKey, runId, channel, what, state, code, error } = event;
  const facts = { deliveryId, ...optional({ runId }), sessionKey, channel, what };
  if (state === "sent") {
    log.debug(facts, "a text was delivered");
    return;
  }
  const run = db
    .selectFrom("runs")
    .select("chain_id")
    .where("run_id", "=", runId ?? "");
  const row = await run.executeTakeFirst().catch(() => undefined);
  const chain = row === undefined ? {} : { chainId: row.chain_id };
  const why = { ...optional({ code, why: error }) };
  log.warn({ ...facts, ...chain, ...why }, "a text was not delivered; see npx parley-gateway deliveries");
}

export function logRuns(engine: Engine, store: Store, world: World): void {
  const { log } = logging(world, { part: "engine" });
  const channels = logging(world, { part: "channels" }).log;
  engine.bus.subscribe((event, here) => {
    if (!here) return;
    if (event.kind === "run_started") {
      const { queuedMs, flowStep } = event;
      const facts = { ...optional({ queuedMs }), ...(flowStep && { flowStep }) };
      log.debug({ ...idsOf(event), ...facts }, queuedMs === undefined ? "a run continues" : "a run started");
    } else if (event.kind === "run_ended") logEnd(log, event);
    else if (event.kind === "delivery") void logDelivery(channels, store, event);
  });
}
