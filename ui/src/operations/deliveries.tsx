// The outbox tab: sent, pending and failed deliveries, with Retry and Dismiss. Dismissing needs confirmation,
// and so does retrying a delivery that may have arrived.
// DV1: an event of the gateway is only a hint: after it, the rows are read again, and only the rows are
//      shown.

import { useRef, useState } from "preact/hooks";
import type { DeliveryRow } from "../../../src/contract/methods/deliveries.ts";
import { optional } from "../../../src/core/optional.ts";
import { cut } from "../../../src/core/text/cut.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { tick } from "../clock.ts";
import { ask } from "../gateway.ts";
import { doubtOf } from "../inbox/actions.ts";
import { moved, useMoves } from "../inbox/moved.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { ago, clockTime, counted, duration } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { complain, say } from "../parts/notices.tsx";
import { useNews, useReading } from "../parts/reading.ts";
import { type Option, Select } from "../parts/select.tsx";
import { State } from "../parts/state.tsx";
import { Time } from "../parts/time.tsx";
import "./rows.css";
import { SessionPicker } from "./session-picker.tsx";

type StateFilter = "" | DeliveryRow["state"];

const PAGE_ROWS = 50;
const TEXT_CHARS_MAX = 2_000;
const EXCERPT_CHARS_MAX = 300;
const STATES: readonly Option<StateFilter>[] = [["", "all"], "pending", "failed", "sent", "skipped"];

/**
 * CSS class of an error, by the state of its delivery. It stands out if somebody may need to act: if the
 * delivery is pending or has failed.
 */
const ERROR_TONES = { pending: "tone-warn", failed: "tone-bad", sent: "", skipped: "" } as const;

interface Filter {
  readonly state: StateFilter;
  readonly sessionKey: string;
  readonly includeDismissed: boolean;
}

const EVERYTHING: Filter = { state: "", sessionKey: "", includeDismissed: false };

interface Outbox {
  readonly rows: readonly DeliveryRow[];
  readonly more: boolean;
}

/** Reads the newest rows, page by page, until there are `wanted` of them. */
async function readOutbox({ state, sessionKey, includeDismissed }: Filter, wanted: number): Promise<Outbox> {
  const rows: DeliveryRow[] = [];
  let cursor: string | undefined;
  do {
    const page = await ask("deliveries.list", {
      limit: PAGE_ROWS,
      maxChars: TEXT_CHARS_MAX,
      includeDismissed,
      ...optional({ state: state || undefined, sessionKey: sessionKey || undefined, cursor }),
    });
    rows.push(...page.deliveries);
    cursor = page.nextCursor;
  } while (cursor !== undefined && rows.length < wanted);
  return { rows, more: cursor !== undefined };
}

function Filters({ filter, onChange }: { filter: Filter; onChange: (next: Filter) => void }) {
  return (
    <div class="bar out-filters">
      <label class="out-field">
        <span>State</span>
        <Select value={filter.state} options={STATES} onPick={(state) => onChange({ ...filter, state })} />
      </label>
      <SessionPicker
        label="Session"
        placeholder="Any session"
        value={filter.sessionKey}
        onPick={(sessionKey) => onChange({ ...filter, sessionKey })}
      />
      <label class="out-check">
        <input
          type="checkbox"
          checked={filter.includeDismissed}
          onChange={(event) => onChange({ ...filter, includeDismissed: event.currentTarget.checked })}
        />
        Include dismissed
      </label>
    </div>
  );
}

/** An action that the reader must confirm. */
type Question = { readonly does: "retry" | "dismiss"; readonly row: DeliveryRow };

function settle({ does, row }: Question, onDone: () => void): void {
  ask(`deliveries.${does}`, { id: row.id })
    .then(() => does === "dismiss" && say("Dismissed."), complain)
    .finally(onDone);
}

function ConfirmSettle({
  question,
  onDone,
  onClose,
}: {
  question: Question;
  onDone: () => void;
  onClose: () => void;
}) {
  const { does, row } = question;
  return (
    <Confirm
      title={does === "retry" ? "Retry this delivery?" : "Dismiss this delivery?"}
      action={does === "retry" ? "Retry" : "Dismiss"}
      onConfirm={() => settle(question, onDone)}
      onClose={onClose}
    >
      <p>{doubtOf({ ...row, kind: "delivery" }, does)}</p>
      <p class="soft out-excerpt">
        <Name text={row.text} />
      </p>
    </Confirm>
  );
}

function Timing({ row }: { row: DeliveryRow }) {
  const now = tick.value;
  const at = row.settledAt ?? row.createdAt;
  const waits = row.state === "pending" && row.attempts > 0 && !row.attemptOpen;
  const left = row.nextAttemptAt - now;
  return (
    <div class="row-when soft">
      <Time at={at}>{ago(at, now)}</Time>
      {row.attempts > 0 && <span>{counted(row.attempts, "attempt")}</span>}
      {row.attemptOpen && <span>sending</span>}
      {waits && <span>{left > 0 ? `next attempt in ${duration(left)}` : "next attempt is due"}</span>}
    </div>
  );
}

function routeWords({ route, sessionKey }: DeliveryRow): string {
  const { channel, accountId, to, threadId } = route;
  const where = [accountId, to === sessionKey ? undefined : to, threadId].filter((one) => one !== undefined);
  return [channel, ...where].join(" · ");
}

function Row({ row, onAsk }: { row: DeliveryRow; onAsk: (does: Question["does"]) => void }) {
  const [isOpen, setOpen] = useState(false);
  const held = moved.value.has(row.id);
  const dismissed = row.dismissedAt !== undefined;
  return (
    <li class={`out-row ${held ? "row-held" : ""}`}>
      <div class="row-state">
        <State state={row.state} {...(dismissed ? { text: "dismissed", tone: "quiet" as const } : {})} />
        <span class="chip">{row.kind}</span>
      </div>
      <div class="row-main">
        <p class="row-title">
          <SessionLink sessionKey={row.sessionKey} />
          <span class="soft" aria-hidden="true">
            →
          </span>
          <span class="visually-hidden">via</span>
          <Name text={routeWords(row)} />
        </p>
        <button
          type="button"
          class="row-text"
          data-row={row.id}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          <Name
            text={row.text === "" ? "(no text)" : cut(row.text, EXCERPT_CHARS_MAX).replaceAll(/\s+/g, " ")}
          />
        </button>
        {row.error !== undefined && (
          <p class={`row-error ${dismissed ? "" : ERROR_TONES[row.state]}`}>
            <Name text={row.code === undefined ? row.error : `${row.code}: ${row.error}`} />
          </p>
        )}
        {isOpen && (
          <div class="row-more">
            <pre class="out-text">
              <bdi>{safeText(row.text)}</bdi>
              {row.textTruncated === true && "\n… (cut here)"}
            </pre>
            <p class="soft mono">
              <Name text={row.id} /> · {clockTime(row.createdAt, true)}
            </p>
          </div>
        )}
      </div>
      <Timing row={row} />
      <div class="row-actions">
        {row.state === "failed" && !dismissed && (
          <>
            <button type="button" aria-disabled={held} onClick={() => onAsk("retry")}>
              Retry
            </button>
            <button type="button" class="quiet" aria-disabled={held} onClick={() => onAsk("dismiss")}>
              Dismiss
            </button>
          </>
        )}
      </div>
    </li>
  );
}

export function DeliveriesTab() {
  const [filter, setFilter] = useState<Filter>(EVERYTHING);
  const [question, setQuestion] = useState<Question>();
  const wanted = useRef(PAGE_ROWS);
  const outbox = useReading(JSON.stringify(filter), () => readOutbox(filter, wanted.current));
  const { again, value, busy } = outbox;
  useNews("deliveries", again);
  const change = (next: Filter): void => {
    wanted.current = PAGE_ROWS;
    setFilter(next);
  };
  const frame = useRef<HTMLUListElement>(null);
  useMoves(frame);
  const onAsk = (does: Question["does"], row: DeliveryRow): void => {
    if (moved.value.has(row.id)) return;
    if (doubtOf({ ...row, kind: "delivery" }, does) === undefined) settle({ does, row }, again);
    else setQuestion({ does, row });
  };
  const older = (): void => {
    wanted.current = (value?.rows.length ?? 0) + PAGE_ROWS;
    again();
  };
  return (
    <>
      <h2>Deliveries</h2>
      <p class="soft">Messages to channels: sent, pending and failed.</p>
      <Filters filter={filter} onChange={change} />
      <Awaited {...outbox} />
      {value?.rows.length === 0 && <p class="empty">No deliveries</p>}
      {value !== undefined && (
        <ul ref={frame} class="out-rows card" aria-label="Deliveries" aria-busy={busy}>
          {value.rows.map((row) => (
            <Row key={row.id} row={row} onAsk={(does) => onAsk(does, row)} />
          ))}
        </ul>
      )}
      {value?.more === true && (
        <p class="out-more">
          <button type="button" onClick={older} disabled={busy}>
            Show older
          </button>
        </p>
      )}
      {question !== undefined && (
        <ConfirmSettle question={question} onDone={again} onClose={() => setQuestion(undefined)} />
      )}
    </>
  );
}
