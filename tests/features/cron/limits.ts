// The limit of scheduled jobs, for the tests of limits that two transactions reach at the same time.

import { operatorViewer } from "../../../src/access/access.ts";
import { JOBS_MAX } from "../../../src/features/cron/job.ts";
import { addJob } from "../../../src/features/cron/jobs.ts";
import type { Add } from "../../flows/add-row.ts";

const add: Add = async (app, _, then) => {
  const ctx = { ...app, timeZone: () => "UTC", checkModel: () => ({ ok: true, value: "" }) as const };
  const schedule = { kind: "every", everyMs: 60_000_000 } as const;
  const wanted = { schedule, message: "work", agentId: "main", also: then };
  const viewer = operatorViewer(["operator.admin"]);
  return (await addJob(ctx, { viewer, id: "me" }, wanted)).ok;
};

export const limits = [["jobs", JOBS_MAX, add]] as const;
