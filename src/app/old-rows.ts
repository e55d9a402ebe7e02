// Deletes rows that are no longer needed, periodically and in limited steps. Part of the composition root.
// The next time of each deletion is a stored deadline, so one of the processes that share a store does it.

import { sql } from "kysely";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { DeadlineHandler } from "../engine/deadlines.ts";
import type { Engine } from "../engine/engine.ts";
import type { Unit } from "../engine/unit.ts";
import { STORE_AGAIN_MS } from "../execute/recorder.ts";
import { notePrefix } from "../flows/delivery/outbox.ts";
import { pruneStep } from "../store/queries/chains/prune.ts";
import { forgetSettled } from "../store/queries/channels/deliveries.ts";
import { forgetSentHooks } from "../store/queries/channels/hook-backlog.ts";
import { pruneInbound } from "../store/queries/channels/inbound.ts";
import { hasDeadline } from "../store/queries/deadlines.ts";
import { deletePiece } from "../store/queries/delete-piece.ts";
import { dropPayloads } from "../store/queries/live-payloads.ts";
import { forgetRevisions } from "../store/queries/runs/revisions.ts";
import type { Table } from "../store/schema/definition.ts";
import { type CopiedTable, TABLES } from "../store/schema/tables.ts";

/** The kind of the stored deadlines at which old rows are deleted. The key says which. */
export const OLD_ROWS_DEADLINE = "old-rows";

/** Time until the next deletion if more rows are old than one deletes. */
const MORE_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Rows that become old, by the key of their deadline. */
interface OldRows {
  /** Time between two deletions. */
  readonly everyMs: number;
  /** Deletes a limited number. Returns whether there may be more. */
  forget(unit: Unit, settings: Settings): Promise<boolean>;
}

const OLD_ROWS: Readonly<Record<string, OldRows>> = {
  /** Prompts and settings of runs. */
  records: {
    everyMs: 6 * HOUR_MS,
    forget: ({ tx, now }, { store: { recordDays = 0 } }) =>
      forgetRevisions(tx, now - recordDays * DAY_MS - STORE_AGAIN_MS),
  },
  chains: {
    everyMs: MINUTE_MS,
    forget: async ({ tx, now }, { store: { retention = 0 } }) =>
      retention > 0 && pruneStep(tx, now - retention * DAY_MS),
  },
  /** Messages of channels, which are kept so that none is taken twice, and notices to strangers. */
  inbound: {
    everyMs: 10 * MINUTE_MS,
    async forget({ tx, now }) {
      const isLong = await forgetSettled(tx, notePrefix("pairing"), now - DAY_MS);
      return (await pruneInbound(tx, now - 14 * DAY_MS)) || isLong;
    },
  },
  /** Delivered events, which operators can inspect for a week. No delivery is tried for a month. */
  hooks: {
    everyMs: HOUR_MS,
    async forget({ tx, now }) {
      let isLong = await forgetSentHooks(tx, now - 7 * DAY_MS);
      for (const [name, { rules }] of Object.entries<Table>(TABLES))
        if (rules.old !== undefined)
          isLong =
            (await deletePiece(tx, name as CopiedTable, rules.key ?? [], sql.raw(rules.old(now)))) || isLong;
      return isLong;
    },
  },
  /** Live events that were too large for a message between processes. */
  payloads: { everyMs: MINUTE_MS, forget: ({ tx, now }) => dropPayloads(tx, now) },
};

/** Stores the first dates, unless they are stored. */
export function planOldRows(engine: Engine): Promise<void> {
  return engine.commit(async (unit) => {
    for (const [key, { everyMs }] of Object.entries(OLD_ROWS))
      if (!(await hasDeadline(unit.tx, OLD_ROWS_DEADLINE, key)))
        await unit.setDeadline({ kind: OLD_ROWS_DEADLINE, key, dueAt: unit.now + everyMs });
  });
}

export function createOldRowsCleanup(settings: Settings): DeadlineHandler {
  return async (unit, key) => {
    const rows = OLD_ROWS[key];
    if (rows === undefined) return "done";
    return unit.now + ((await rows.forget(unit, settings)) ? MORE_MS : rows.everyMs);
  };
}
