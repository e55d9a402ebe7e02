// The tab for scheduled jobs, in the order of their next runs, with a button for a new job.

import { useEffect, useState } from "preact/hooks";
import { ask, may } from "../../gateway.ts";
import { Button } from "../../parts/button.tsx";
import { Awaited } from "../../parts/failure.tsx";
import { useNews, useReading } from "../../parts/reading.ts";
import type { Job } from "./draft.ts";
import { JobForm } from "./form.tsx";
import { JobCard } from "./job.tsx";
import "./schedules.css";

const PAGE = 100;

/** Reads the first `pages` pages of jobs, and returns them as one list. */
async function readJobs(pages: number) {
  let page = await ask("cron.list", { limit: PAGE });
  const jobs = [...page.jobs];
  for (let read = 1; read < pages && page.nextCursor !== undefined; read += 1) {
    page = await ask("cron.list", { limit: PAGE, cursor: page.nextCursor });
    jobs.push(...page.jobs);
  }
  return { ...page, jobs };
}

/** Compares jobs by the time of the next run. A job without a next run comes last. */
function bySoonest(one: Job, other: Job): number {
  const at = (job: Job): number => job.state.nextRunAtMs ?? Number.MAX_SAFE_INTEGER;
  return at(one) - at(other) || one.createdAtMs - other.createdAtMs;
}

function Empty() {
  return (
    <div class="empty">
      <p>No scheduled jobs</p>
      <p>
        A job sends a message to an agent at set times: for a report every morning, or a check every hour.
      </p>
    </div>
  );
}

export function SchedulesTab({ about }: { about: string | undefined }) {
  const [pages, setPages] = useState(1);
  const [editing, setEditing] = useState<{ job: Job | undefined } | undefined>();
  const list = useReading("cron.list", () => readJobs(pages));
  const { value, again } = list;
  useNews("cron", again);
  useEffect(() => {
    if (pages > 1) again();
  }, [pages, again]);
  const close = (): void => setEditing(undefined);
  return (
    <div class="schedules">
      <div class="bar head-bar">
        <h2>Schedules</h2>
        {may("operator.admin") && (
          <Button text="New job" class="primary" data-act="" onClick={() => setEditing({ job: undefined })} />
        )}
      </div>
      {value?.note !== undefined && (
        <p class="card note tone-warn" role="note">
          {value.note}
        </p>
      )}
      <Awaited {...list} />
      {value?.jobs.length === 0 && <Empty />}
      <ul class="jobs">
        {value?.jobs.toSorted(bySoonest).map((job) => (
          <JobCard key={job.id} job={job} open={about === job.id} onEdit={() => setEditing({ job })} />
        ))}
      </ul>
      {value?.nextCursor !== undefined && <Button text="Show more" onClick={() => setPages(pages + 1)} />}
      {editing !== undefined && <JobForm job={editing.job} onClose={close} />}
    </div>
  );
}
