// The history of a job's runs, newest first.

import { ask } from "../../gateway.ts";
import { Table } from "../../operations/table.tsx";
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

export function TurnState({ turn }: { turn: Turn }) {
  if (turn.status !== "skipped") return <State state={turn.status} />;
  const code = turn.code ?? "";
  return (
    <State state="skipped" text={LEFT_OUT[code] ?? "refused"} tone={code in LEFT_OUT ? "warn" : "bad"} />
  );
}

export function History({ job }: { job: Pick<Job, "id"> }) {
  const reading = useReading(`cron.runs ${job.id}`, () => ask("cron.runs", { id: job.id, limit: SHOWN_MAX }));
  const { value, again } = reading;
  useNews("cron", again, ({ id }) => id === job.id);
  if (value === undefined) return <Awaited {...reading} />;
  if (value.entries.length === 0) return <p class="empty">No runs yet</p>;
  return (
    <Table
      label="Runs"
      box="scroll-x turns"
      rows={value.entries}
      rowKey={(turn) => turn.seq}
      columns={[
        { title: "Date", class: "cut", cell: ({ firedAtMs }) => clockTime(firedAtMs, true) },
        { title: "Cause", cell: ({ cause }) => CAUSES[cause] },
        {
          title: "Result",
          cell: (turn) => (
            <>
              <TurnState turn={turn} />
              {turn.error !== undefined && <Name as="div" class="soft small" text={turn.error} />}
            </>
          ),
        },
        {
          title: "Duration",
          class: "number",
          cell: ({ durationMs: ms }) => ms !== undefined && duration(ms),
        },
        {
          title: "Tokens",
          class: "number",
          cell: ({ totalTokens: count }) => count !== undefined && tokens(count),
        },
        { title: "Reply", cell: ({ delivery }) => delivery !== undefined && <State state={delivery} /> },
      ]}
    />
  );
}
