// The outbox tab: sent, pending and failed deliveries, with Retry and Dismiss. Dismissing needs confirmation,
// and so does retrying a delivery that may have arrived.
// DV1: an event of the gateway is only a hint: after it, the rows are read again, and only the rows are
//      shown.

import { useRef, useState } from "preact/hooks";
import type { DeliveryRow } from "../../../src/contract/methods/deliveries.ts";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import { optional } from "../../../src/core/optional.ts";
import { cut } from "../../../src/core/text/cut.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { tick } from "../clock.ts";
import { ask } from "../gateway.ts";
import { doubtOf } from "../inbox/actions.ts";
import { moved, useMoves } from "../inbox/moved.ts";
import { Button } from "../parts/button.tsx";
import { clockTime, counted, duration } from "../parts/format.ts";
import { useKept } from "../parts/kept.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { useNews, usePages } from "../parts/reading.ts";
import { type Option, Select } from "../parts/select.tsx";
import { State } from "../parts/state.tsx";
import { Time } from "../parts/time.tsx";
import { ResourceList, type ResourceRow, type RowAction } from "./resource-list.tsx";
import { SessionPicker } from "./session-picker.tsx";

type StateFilter = "" | DeliveryRow["state"];

const PAGE_ROWS = 50;
const TEXT_CHARS_MAX = 2_000;
const EXCERPT_CHARS_MAX = 300;
const STATES: readonly Option<StateFilter>[] = [["", "all"], "pending", "failed", "sent", "skipped"];

/** An error stands out if somebody may need to act. */
const ERROR_TONES = { pending: "tone-warn", failed: "tone-bad", sent: "", skipped: "" } as const;

const EVERYTHING = { state: "" as StateFilter, sessionKey: "", includeDismissed: false };

function Timing({ row }: { row: DeliveryRow }) {
  const now = tick.value;
  const at = row.settledAt ?? row.createdAt;
  const waits = row.state === "pending" && row.attempts > 0 && !row.attemptOpen;
  const left = row.nextAttemptAt - now;
  return (
    <div class="row-when small soft">
      <Time at={at} as="ago" />
      {row.attempts > 0 && <span>{counted(row.attempts, "attempt")}</span>}
      {row.attemptOpen && <span>sending</span>}
      {waits && <span>{left > 0 ? `next attempt in ${duration(left)}` : "next attempt is due"}</span>}
    </div>
  );
}

function Text({ row }: { row: DeliveryRow }) {
  const [isOpen, setOpen] = useState(false);
  const line = row.text === "" ? "(no text)" : cut(row.text, EXCERPT_CHARS_MAX).replaceAll(/\s+/g, " ");
  return (
    <>
      <Button
        text={<Name text={line} />}
        class="plain cut"
        data-row={row.id}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      />
      {isOpen && (
        <div class="stack">
          <pre class="sunken out-text">
            <bdi>{safeText(row.text)}</bdi>
            {row.textTruncated === true && "\n… (cut here)"}
          </pre>
          <p class="soft mono">
            <Name text={row.id} /> · {clockTime(row.createdAt, true)}
          </p>
        </div>
      )}
    </>
  );
}

/** Retrying or dismissing a failed delivery. A row that has moved a moment ago does nothing. */
function settling(row: DeliveryRow, does: "retry" | "dismiss"): RowAction {
  const label = does === "retry" ? "Retry" : "Dismiss";
  const doubt = doubtOf({ ...row, kind: "delivery" }, does);
  const text = (
    <>
      <p>{doubt}</p>
      <Name as="p" class="soft cut" text={row.text} />
    </>
  );
  return {
    label,
    disabled: moved.value.has(row.id),
    run: () => ask(`deliveries.${does}`, { id: row.id }),
    ...(does === "dismiss" && { class: "quiet" as const, done: "Dismissed." }),
    question: doubt === undefined ? undefined : { title: `${label} this delivery?`, text },
  };
}

function deliveryRow(row: DeliveryRow): ResourceRow {
  const isDismissed = row.dismissedAt !== undefined;
  const mayAct = row.state === "failed" && !isDismissed;
  const { channel, accountId, to, threadId } = row.route;
  const where = [accountId, to === row.sessionKey ? undefined : to, threadId].filter(
    (one) => one !== undefined,
  );
  return {
    key: row.id,
    class: moved.value.has(row.id) ? "held" : "",
    state: (
      <>
        <State state={row.state} {...(isDismissed ? { text: "dismissed", tone: "quiet" as const } : {})} />
        <span class="chip">{row.kind}</span>
      </>
    ),
    beside: (
      <>
        <SessionLink sessionKey={row.sessionKey} />
        <span class="soft" aria-hidden="true">
          →
        </span>
        <span class="visually-hidden">via</span>
        <Name text={[channel, ...where].join(" · ")} />
      </>
    ),
    error:
      row.error === undefined
        ? undefined
        : {
            text: row.code === undefined ? row.error : `${row.code}: ${row.error}`,
            class: isDismissed ? "" : ERROR_TONES[row.state],
          },
    body: <Text row={row} />,
    when: <Timing row={row} />,
    actions: mayAct ? [settling(row, "retry"), settling(row, "dismiss")] : [],
  };
}

export function DeliveriesTab() {
  const [filter, setFilter] = useKept("filter", EVERYTHING);
  const { state, sessionKey, includeDismissed } = filter;
  const outbox = usePages(JSON.stringify(filter), (before?: PayloadOf<"deliveries.list">) =>
    ask("deliveries.list", {
      ...{ limit: PAGE_ROWS, maxChars: TEXT_CHARS_MAX, includeDismissed },
      ...optional({
        state: state || undefined,
        sessionKey: sessionKey || undefined,
        cursor: before?.nextCursor,
      }),
    }),
  );
  const { again, value } = outbox;
  useNews("deliveries", again);
  const frame = useRef<HTMLUListElement>(null);
  useMoves(frame);
  return (
    <ResourceList
      title="Deliveries"
      words="Messages to channels: sent, pending and failed."
      list={outbox}
      rows={value?.flatMap(({ deliveries }) => deliveries)}
      row={deliveryRow}
      empty="No deliveries"
      frame={frame}
    >
      <div class="bar out-filters">
        <label class="out-field">
          <span>State</span>
          <Select value={state} options={STATES} onPick={(one) => setFilter({ ...filter, state: one })} />
        </label>
        <SessionPicker
          label="Session"
          placeholder="Any session"
          value={sessionKey}
          onPick={(key) => setFilter({ ...filter, sessionKey: key })}
        />
        <label class="row">
          <input
            type="checkbox"
            checked={includeDismissed}
            onChange={() => setFilter({ ...filter, includeDismissed: !includeDismissed })}
          />
          Include dismissed
        </label>
      </div>
    </ResourceList>
  );
}
