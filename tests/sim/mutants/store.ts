// Mutants of the queries: allowed changes of a row, and the choice of the next row.

import type { Mutant } from "./mutant.ts";

export const STORE_MUTANTS: readonly Mutant[] = [
  {
    name: "move-without-fence",
    breaks: "I1: a run that has ended is set to waiting or running again",
    file: "src/store/queries/runs/claims.ts",
    from: `    .set(moved)
    .where(isFenced(fence))
    .where("state", "in", HOLDING)
`,
    to: `    .set(moved)
    .where("run_id", "=", fence.runId)
`,
  },
  {
    name: "lane-in-order-of-ids",
    breaks: "I3: a lane is worked off in the order of run ids",
    file: "src/store/queries/runs/claims.ts",
    from: '.orderBy("first.lane_seq")',
    to: '.orderBy("first.run_id")',
  },
  {
    name: "lane-newest-first",
    breaks: "I3: the newest message of a lane is worked off first",
    file: "src/store/queries/runs/claims.ts",
    from: '.orderBy("first.lane_seq")',
    to: '.orderBy("first.lane_seq", "desc")',
  },
  {
    name: "chain-count-stands-still",
    breaks: "I8: the second run of a chain is not counted",
    file: "src/store/queries/chains/chains.ts",
    from: "chains.runs + excluded.runs",
    to: "chains.runs",
  },
  {
    name: "chain-usage-not-added",
    breaks: "I8: what a chain costs is not counted",
    file: "src/store/queries/chains/chains.ts",
    from: `{ chainId, tokens: usage.totalTokens,`,
    to: `{ chainId, tokens: 0,`,
  },
  {
    name: "budget-told-again-and-again",
    breaks: "I4: the root session is told of a used-up budget at every refusal",
    file: "src/store/queries/chains/chains.ts",
    from: '.where("told", "=", 0)',
    to: "",
  },
  {
    name: "late-answers-count",
    breaks: "I12: an end after the deadline counts as an answer in time",
    file: "src/store/queries/runs/waits.ts",
    from: `when("deadline_at", "<", endedAt)`,
    to: `when("deadline_at", "<", 0)`,
  },
  {
    name: "open-attempt-forgotten",
    breaks: "I2: an attempt that a crash left open is never settled",
    file: "src/store/queries/channels/deliveries.ts",
    from: `where("attempt_open", "=", sql.lit(1))`,
    to: `where("attempt_open", "=", sql.lit(2))`,
  },
  {
    name: "parts-not-counted",
    breaks: "I5: a part that was acknowledged is sent again",
    file: "src/store/queries/channels/deliveries.ts",
    from: `eb("parts_sent", "+", 1)`,
    to: `eb("parts_sent", "+", 0)`,
  },
  {
    name: "route-newest-first",
    breaks: "I5: the newest delivery of a route overtakes the others",
    file: "src/store/queries/channels/deliveries.ts",
    from: `firstSql("t.key"))`,
    to: `firstSql("t.key").replace("d.seq limit", "d.seq desc limit"))`,
  },
  {
    name: "retry-at-once",
    breaks: "I5: a delivery that a channel put off is made again without a pause",
    file: "src/store/queries/channels/deliveries.ts",
    from: "and t.due_at <= ${now}\n",
    to: "and ${now} > 0\n",
  },
  {
    name: "timer-of-the-newest",
    breaks: "I5: the timer of a route follows its newest delivery, so that the first one is late",
    file: "src/store/schema/outbox-schema.ts",
    from: "select ${PLACE}, ${QUEUE}, d.next_attempt_at ${firstSql(QUEUE)};",
    to: 'select ${PLACE}, ${QUEUE}, d.next_attempt_at ${firstSql(QUEUE).replace("d.seq limit", "d.seq desc limit")};',
  },
  {
    name: "lane-number-taken-twice",
    breaks: "I3: two messages of a lane have one number",
    file: "src/store/queries/sessions/sessions.ts",
    from: `eb("next_lane_seq", "+", 1)`,
    to: `eb("next_lane_seq", "+", 0)`,
  },
  {
    name: "stored-text-masked",
    breaks: "I14: a secret is masked in the stored transcript",
    file: "src/store/queries/transcripts/append.ts",
    from: "const row = rowOf(args);",
    to: "const row = rowOf({ ...args, entry: JSON.parse(redactor.mask(JSON.stringify(entry))) });",
  },
  {
    name: "secrets-in-the-index",
    breaks: "I14: a search for a secret finds where it stands",
    file: "src/store/queries/transcripts/append.ts",
    from: `spoken === "" ? "" : redactor.mask(spoken)`,
    to: "spoken",
  },
  {
    name: "key-forgotten",
    breaks: "I4: the answer under an idempotency key is not remembered",
    file: "src/store/queries/idempotency.ts",
    from: `if (row === undefined) return "none";`,
    to: `if (row !== null) return "none";`,
  },
  {
    name: "deleted-transcript-kept",
    breaks: "I14: what was said in a deleted session stays in the table",
    file: "src/store/schema/session-tables.ts",
    from: `where role = 'compaction'",
      ],
      removed: { of: "session_id" },`,
    to: `where role = 'compaction'",
      ],
      removed: { of: "session_id", when: sql\`1 = 0\` },`,
  },
  {
    name: "copy-from-the-wrong-place",
    breaks: "MI1: the readable copy of a transcript loses the entry after which it continues",
    file: "src/store/sqlite/jsonl-copies.ts",
    from: "if (row !== undefined) return row.seq;",
    to: "if (row !== undefined) return row.seq + 1;",
  },
];
