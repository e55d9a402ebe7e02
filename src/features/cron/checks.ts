// Warns of jobs that will fail.

import { notConfigured, type Settings } from "../../core/shapes/settings/settings.ts";
import type { Db } from "../../store/sql.ts";
import { jobsOfOthers } from "./store.ts";

const WARNINGS_MAX = 10;

/** Returns a warning for each of the first jobs whose agent was removed from the configuration. */
export async function warnings(
  db: Db,
  settings: Settings,
  show: (text: string) => string,
): Promise<readonly string[]> {
  const ids = settings.agents.map(({ id }) => id);
  return (await jobsOfOthers(db, ids, WARNINGS_MAX)).map(({ id, name = id, agentId }) => {
    const job = JSON.stringify(show(name));
    return `the scheduled job ${job} fails: ${notConfigured(agentId)}; see npx parley-gateway cron list`;
  });
}
