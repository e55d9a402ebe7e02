// Inserts many deliveries on PostgreSQL. The timers of their queues follow in one statement, because the trigger
// that writes them runs three queries for each row.

import { queueKeySql, timerKindSql } from "../../src/store/schema/outbox-schema.ts";

const QUEUE = queueKeySql("d.");

/** Returns the statements that insert deliveries and leave the same timers as the trigger. */
export const deliveryStatements = (insertion: string): string[] => [
  "alter table deliveries disable trigger user",
  insertion,
  `insert into deadlines (kind, key, due_at)
    select distinct on (${QUEUE}) ${timerKindSql("d.", "::json")}, ${QUEUE}, d.next_attempt_at
    from deliveries d where d.settled_at is null order by ${QUEUE}, d.seq`,
  "alter table deliveries enable trigger user",
];
