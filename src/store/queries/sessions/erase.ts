// Removes the texts of a deleted session from all tables, as the definitions of the tables say.

import { sql } from "kysely";
import type { Table } from "../../schema/definition.ts";
import { TABLES } from "../../schema/tables.ts";
import type { Tx } from "../../sql.ts";
import { eraseDeliveries } from "../channels/deliveries.ts";
import { eraseAnswers } from "../idempotency.ts";
import { erasePayloads } from "../live-payloads.ts";
import { forgetInstructions } from "../runs/revisions.ts";
import { eraseInputs } from "../runs/runs.ts";

interface Erased {
  readonly key: string;
  readonly sessionIds: readonly string[];
  readonly since: number;
}

const ALWAYS = sql`1 = 1`;

export async function eraseTexts(tx: Tx, { key, sessionIds, since }: Erased): Promise<void> {
  for (const [table, { rules }] of Object.entries<Table>(TABLES)) {
    if (rules.removed !== undefined) {
      const { of, when = ALWAYS } = rules.removed;
      for (const name of of === "session_id" ? sessionIds : [key]) {
        await sql`delete from ${sql.table(table)} where ${sql.ref(of)} = ${name} and ${when}`.execute(tx);
      }
    }
    for (const { of, when = ALWAYS, columns } of rules.blanked ?? []) {
      const values = Object.entries(columns).map(([name, value]) => sql`${sql.ref(name)} = ${value}`);
      await sql`update ${sql.table(table)} set ${sql.join(values)}
        where ${sql.ref(of)} = ${key} and ${when}`.execute(tx);
    }
  }
  await eraseInputs(tx, key);
  await forgetInstructions(tx, key);
  await eraseDeliveries(tx, key);
  await eraseAnswers(tx, key, since);
  await erasePayloads(tx, key);
}
