// The tab for scheduled jobs, in the order of their next runs, with a button for a new job.

import type { PayloadOf } from "../../../../src/contract/methods.ts";
import { optional } from "../../../../src/core/optional.ts";
import { ask, may } from "../../gateway.ts";
import { ActionButton, ResourceList, type RowAction, useOpened } from "../../operations/resource-list.tsx";
import { useNews, usePages } from "../../parts/reading.ts";
import type { Job } from "./draft.ts";
import { JobForm } from "./form.tsx";
import { jobRow } from "./job.tsx";
import "./schedules.css";

const PAGE = 100;

/** Compares jobs by the time of the next run. A job without a next run comes last. */
function bySoonest(one: Job, other: Job): number {
  const at = (job: Job): number => job.state.nextRunAtMs ?? Number.MAX_SAFE_INTEGER;
  return at(one) - at(other) || one.createdAtMs - other.createdAtMs;
}

const CREATE: RowAction = {
  label: "New job",
  class: "primary",
  dialog: ({ onClose }) => <JobForm job={undefined} onClose={onClose} />,
};

export function SchedulesTab({ about }: { about: string | undefined }) {
  const { opened, onOpen } = useOpened();
  const list = usePages("cron.list", (before?: PayloadOf<"cron.list">) =>
    ask("cron.list", { limit: PAGE, ...optional({ cursor: before?.nextCursor }) }),
  );
  const { value, again } = list;
  useNews("cron", again);
  const note = value?.[0]?.note;
  return (
    <>
      <ResourceList
        title="Schedules"
        head={may("operator.admin") && <ActionButton action={CREATE} onOpen={onOpen} data-act="" />}
        list={list}
        rows={value?.flatMap(({ jobs }) => jobs).sort(bySoonest)}
        row={(job) => jobRow(job, about === job.id)}
        empty={
          <>
            <p>No scheduled jobs</p>
            <p>
              A job sends a message to an agent at set times: for a report every morning, or a check every
              hour.
            </p>
          </>
        }
      >
        {note !== undefined && (
          <p class="note tone-warn" role="note">
            {note}
          </p>
        )}
      </ResourceList>
      {opened}
    </>
  );
}
