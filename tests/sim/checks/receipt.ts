// Checks the receipts of messages: a state never goes back, each fact is stored once, the message of an ended
// run has a final state, and a message in an inbox gets one later.

import { receiptOf } from "../../../src/core/rules/receipt.ts";
import type { Receipt, ReceiptState, Run } from "../../../src/core/shapes/run.ts";
import type { Story } from "../story.ts";
import type { Row } from "../world/database.ts";

/** Selects messages between sessions that have not ended, or that have ended since the last check. */
const MESSAGES = `select r.run_id, r.kind, r.state, r.code, r.reply, r.model, r.accepted_at, r.started_at,
  r.ended_at, r.flow_id, r.flow_step, k.run_id as marked, k.offered_at, k.in_turn_at, k.ended_at as mark_ended_at,
  k.outcome, r.heard_at, k.ended_at is null and k.run_id is not null and r.state = 'ok' as is_open,
  s.session_id is null or s.session_id <> r.session_id as is_left, d.key is not null as is_dated
  from runs r left join inbox_marks k on k.run_id = r.run_id left join sessions s on s.key = r.session_key
    left join deadlines d on d.kind = 'inbox' and d.key = r.run_id
  where r.flow_step in ('round1', 'reply')
    and exists (select 1 from session_ids i where i.session_id = r.session_id)
    and (r.state in ('queued', 'running', 'waiting') or r.ended_at >= ?1 or k.ended_at >= ?1
      or (k.run_id is not null and k.ended_at is null))`;

const ORDER: readonly ReceiptState[] = ["queued", "offered", "in_turn"];

const rankOf = (state: ReceiptState): number => (ORDER.includes(state) ? ORDER.indexOf(state) : ORDER.length);

const set = <K extends string>(name: K, value: unknown): { [P in K]?: number } =>
  value === null ? {} : ({ [name]: Number(value) } as { [P in K]?: number });

function receiptIn(row: Row): Receipt | undefined {
  const run = {
    runId: String(row.run_id),
    kind: String(row.kind) as Run["kind"],
    state: String(row.state) as Run["state"],
    acceptedAt: Number(row.accepted_at),
    ...set("startedAt", row.started_at),
    ...set("heardAt", row.heard_at),
    ...set("endedAt", row.ended_at),
    ...(row.code === null ? {} : { code: String(row.code) }),
    ...(row.reply === null ? {} : { reply: String(row.reply) }),
    ...(row.model === null ? {} : { model: String(row.model) }),
    flow: { flowId: String(row.flow_id), step: row.flow_step as "round1" | "reply", turn: 1 },
  };
  const mark = {
    ...set("offeredAt", row.offered_at),
    ...set("inTurnAt", row.in_turn_at),
    ...set("endedAt", row.mark_ended_at),
    ...(row.outcome === null ? {} : { outcome: row.outcome as "answered" | "declined" | "expired" }),
  };
  return receiptOf({ run, ...(row.marked === null ? {} : { mark }) });
}

/** Compares the receipt of each message with that of the previous step. */
export class ReceiptChecks {
  readonly #known = new Map<string, Receipt>();
  readonly #story: Story;
  #sinceMs = 0;

  constructor(story: Story) {
    this.#story = story;
  }

  async check(): Promise<void> {
    for (const row of await this.#story.look(MESSAGES, this.#sinceMs)) {
      const receipt = receiptIn(row);
      if (receipt === undefined) this.#story.wrong("I2", `message ${String(row.run_id)} has no receipt`);
      else this.#compare(receipt, row);
    }
    this.#sinceMs = this.#story.time.now();
  }

  #compare(receipt: Receipt, row: Row): void {
    const { messageId, state, times } = receipt;
    const before = this.#known.get(messageId);
    this.#known.set(messageId, receipt);
    if (row.is_open === 1 && row.is_left === 1)
      this.#story.wrong("I2", `message ${messageId} is ${state} in an inbox that lost its transcript`);
    if (row.is_open === 1 && row.is_dated !== 1)
      this.#story.wrong("I2", `message ${messageId} waits in an inbox and never expires`);
    const isModelRun = row.kind === "turn";
    if (isModelRun && row.ended_at !== null && rankOf(state) < ORDER.length)
      this.#story.wrong("I2", `the run of message ${messageId} has ended, and the message is ${state}`);
    if (before === undefined) return;
    const isBack = rankOf(state) < rankOf(before.state);
    const isOther = rankOf(before.state) === ORDER.length && state !== before.state;
    if (isBack || isOther)
      this.#story.wrong("I2", `message ${messageId} was ${before.state} and is ${state}`);
    for (const [name, at] of Object.entries(before.times)) {
      const now = times[name as ReceiptState];
      if (now !== at) this.#story.wrong("I2", `message ${messageId} was ${name} at ${at}, and now at ${now}`);
    }
  }
}
