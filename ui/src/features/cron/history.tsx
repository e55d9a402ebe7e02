// The history of a job's runs, newest first.

import { ask } from "../../gateway.ts";
import { Awaited } from "../../parts/failure.tsx";
import { clockTime, duration, tokens } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { useNews, useReading } from "../../parts/reading.ts";
import { State } from "../../parts/state.tsx";
import type { Job, Turn } from "./draft.ts";

const SHOWN_MAX = 100;

const CAUSES = { schedule: "on time", late: "late", manual: "by hand" } as const;
const LEFT_OUT: Readonly<Record<string, string>> = {
  missed: "missed",
  still_running: "still running",
};

/** Shows the outcome of a run as a coloured word. */
export function TurnState({ turn }: { turn: Turn }) {
  if (turn.status !== "skipped") return <State state={turn.status} />;
  const code = turn.code ?? "";
  return (
    <State state="skipped" text={LEFT_OUT[code] ?? "refused"} tone={code in LEFT_OUT ? "warn" : "bad"} />
  );
}

function Row({ turn }: { turn: Turn }) {
  const { firedAtMs, durationMs, totalTokens, error, delivery } = turn;
  return (
    <tr>
      <td class="nowrap">{clockTime(firedAtMs, true)}</td>
      <td>{CAUSES[turn.cause]}</td>
      <td>
        <TurnState turn={turn} />
        {error !== undefined && (
          <div class="soft why">
            <Name text={error} />
          </div>
        )}
      </td>
      <td class="number">{durationMs === undefined ? "" : duration(durationMs)}</td>
      <td class="number">{totalTokens === undefined ? "" : tokens(totalTokens)}</td>
      <td>{delivery === undefined ? "" : <State state={delivery} />}</td>
    </tr>
  );
}

export function History({ job }: { job: Pick<Job, "id"> }) {
  const reading = useReading(`cron.runs ${job.id}`, () => ask("cron.runs", { id: job.id, limit: SHOWN_MAX }));
  const { value, again } = reading;
  useNews("cron", again, ({ id }) => id === job.id);
  if (value === undefined) return <Awaited {...reading} />;
  if (value.entries.length === 0) return <p class="empty">No runs yet</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached with the keyboard
    <section class="scroll-x turns" tabIndex={0} aria-label="Runs">
      <table>
        <thead>
          <tr>
            <th>Date</th>
            <th>Cause</th>
            <th>Result</th>
            <th class="number">Duration</th>
            <th class="number">Tokens</th>
            <th>Reply</th>
          </tr>
        </thead>
        <tbody>
          {value.entries.map((turn) => (
            <Row key={turn.seq} turn={turn} />
          ))}
        </tbody>
      </table>
    </section>
  );
}
