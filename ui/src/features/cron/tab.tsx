// The tab for scheduled jobs, in the order of their next runs, with a button for a new job.

import { useEffect, useState } from "preact/hooks";
import { ask, may } from "../../gateway.ts";
import { ResourceList } from "../../operations/resource-list.tsx";
import { Button } from "../../parts/button.tsx";
import { useNews, useReading } from "../../parts/reading.ts";
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

export function SchedulesTab({ about }: { about: string | undefined }) {
  const [pages, setPages] = useState(1);
  const [isAdding, setAdding] = useState(false);
  const list = useReading("cron.list", async () => {
    let page = await ask("cron.list", { limit: PAGE });
    const jobs = [...page.jobs];
    for (let read = 1; read < pages && page.nextCursor !== undefined; read += 1) {
      page = await ask("cron.list", { limit: PAGE, cursor: page.nextCursor });
      jobs.push(...page.jobs);
    }
    return { ...page, jobs };
  });
  const { value, again } = list;
  useNews("cron", again);
  useEffect(() => {
    if (pages > 1) again();
  }, [pages, again]);
  return (
    <>
      <ResourceList
        title="Schedules"
        head={
          may("operator.admin") && (
            <Button text="New job" class="primary" data-act="" onClick={() => setAdding(true)} />
          )
        }
        list={list}
        rows={value?.jobs.toSorted(bySoonest)}
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
        {value?.note !== undefined && (
          <p class="note tone-warn" role="note">
            {value.note}
          </p>
        )}
      </ResourceList>
      {value?.nextCursor !== undefined && (
        <p class="out-more">
          <Button text="Show more" onClick={() => setPages(pages + 1)} />
        </p>
      )}
      {isAdding && <JobForm job={undefined} onClose={() => setAdding(false)} />}
    </>
  );
}
