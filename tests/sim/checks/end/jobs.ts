// Checks the job of every sub-agent at the end of a story: its result was announced once, with the status of
// its run, and the session was cleaned up (I4, I12, AR1).

import type { Story } from "../../story.ts";
import type { Row } from "../../world/database.ts";
import type { Books, RunBook } from "./books.ts";

/**
 * Returns the statuses that a text reports. Every line that begins with `Status:` is the runtime's, because
 * the runtime marks such lines in a child's text, so that they do not match.
 */
function statusesIn(text: string): string[] {
  return [...text.matchAll(/^Status: (\w+)$/gm)].map((match) => match[1] ?? "");
}

interface Told {
  readonly wakes: readonly RunBook[];
  readonly appends: readonly RunBook[];
  readonly posts: readonly Row[];
}

/** Returns how the result of a job was announced: as messages and as deliveries. */
function toldOf(books: Books, job: Row, own: readonly RunBook[]): Told {
  const child = String(job.target_key);
  const told = (books.lanes.get(String(job.requester_key)) ?? []).filter(
    ({ provenance }) => provenance?.kind === "inter_session" && provenance.sourceSessionKey === child,
  );
  const fromJob = told.filter(
    ({ provenance }) => provenance?.kind === "inter_session" && provenance.sourceTool === "sessions_spawn",
  );
  const ids = new Set(own.map((run) => run.runId));
  const posts = books.deliveries.filter(
    // A text that was blanked with the requester may be this one. The child's own texts are its replies.
    (row) =>
      ids.has(String(row.run_id)) &&
      (row.text === "" ? row.session_key !== child : String(row.text).includes(`session ${child} `)),
  );
  return {
    // A stop replaces a wake that has not started by an append.
    wakes: fromJob.filter(
      (run) => run.kind === "turn" && (run.startedAt !== undefined || run.code !== "run_aborted"),
    ),
    appends: fromJob.filter((run) => run.kind === "append"),
    posts,
  };
}

/**
 * I4: checks that a result was appended, woke its requester, was posted or was kept, once; or that the job
 * was silent or cancelled.
 */
function checkTold(story: Story, job: Row, { wakes, appends, posts }: Told): void {
  const counts = `${wakes.length} wakes, ${appends.length} appends, ${posts.length} posts`;
  const about = `the job of ${String(job.target_key)} (${String(job.end_reason)}) is told by ${counts}`;
  if (job.end_reason !== "announced") {
    if (job.end_reason !== "cancelled" && job.end_reason !== "silent") story.wrong("I4", about);
    if (wakes.length + appends.length + posts.length > 0) story.wrong("I4", about);
    return;
  }
  if (wakes.length > 0) {
    if (wakes.length > 1 || appends.length > 0 || posts.length > 0) story.wrong("I4", about);
    return;
  }
  if (appends.length > 1 || posts.length > 1) story.wrong("I4", about);
  if (appends.length + posts.length === 0) story.wrong("I2", `${about}: by nobody`);
}

/** I12: checks that the announced status is that of the job's last run, whatever the child's text says. */
function checkStatus(story: Story, job: Row, { wakes, appends, posts }: Told, own: readonly RunBook[]): void {
  const last = own.filter((run) => run.step === "task").at(-1);
  for (const text of [...wakes, ...appends, ...posts].map((one) => String(one.text))) {
    if (text === "") continue;
    const [status, ...more] = statusesIn(text);
    const wasStopped = last?.state === "ok" && status === "aborted" && story.stopped.size > 0;
    const fits = status === last?.state || wasStopped;
    if (!fits || more.length > 0)
      story.wrong(
        "I12",
        `the job of ${String(job.target_key)} ended ${last?.state}, and its announcement says: ${text}`,
      );
  }
}

/** Checks that a child session was deleted or archived if its spawn asked for that. */
function checkCleanup(story: Story, books: Books): void {
  for (const { key, spawn, archived } of books.sessions.values()) {
    if (spawn === undefined) continue;
    if (spawn.cleanup === "delete") story.wrong("I4", `${key} was to be deleted, and is there`);
    if (!archived && spawn.archiveAfterMinutes > 0 && !story.restored.has(key))
      story.wrong("I4", `${key} was to be archived, and is not`);
    if (archived && spawn.archiveAfterMinutes === 0)
      story.wrong("I4", `${key} was never to be archived, and is`);
  }
}

/**
 * JB1: checks that a job ended only after its child jobs. CN1: checks that a job ended if the run that
 * started it was aborted.
 */
function checkEnds(story: Story, books: Books, job: Row): void {
  const child = String(job.target_key);
  const endedAt = Number(job.ended_at);
  const below = books.flows.filter((one) => {
    // A message to a child whose job has just ended can begin another job in the same millisecond.
    const isOfJob = books.runOf.get(String(one.requester_run_id))?.flowId === job.flow_id;
    const createdAt = Number(one.created_at) + (isOfJob ? 0 : 1);
    return one.kind === "spawn" && one.requester_key === child && createdAt <= endedAt;
  });
  const late = below.find((one) => Number(one.ended_at) > Number(job.ended_at));
  if (late !== undefined && job.end_reason !== "cancelled" && !story.stopped.has(child))
    story.wrong("JB1", `the job of ${child} ended before that of ${String(late.target_key)}, below it`);
  const giver = books.runOf.get(String(job.requester_run_id));
  const isStopped = giver?.state === "aborted" && giver.code !== "session_reset";
  if (isStopped && Number(job.ended_at) > (giver.endedAt ?? 0))
    story.wrong("CN1", `the job of ${child} goes on when ${giver.runId}, which gave it, is ${giver.code}`);
  const isCancelled = story.cancelled.has(child) && job.end_reason !== "cancelled";
  if (isCancelled)
    story.wrong("CN1", `the job of ${child} was cancelled, and ended as ${String(job.end_reason)}`);
}

export function checkJobs(story: Story, books: Books): void {
  const byFlow = Map.groupBy(books.runs, (run) => run.flowId ?? "");
  const children = new Set<string>();
  for (const job of books.flows) {
    if (job.kind !== "spawn") continue;
    const child = String(job.target_key);
    if (children.has(child)) story.wrong("I4", `${child} has two jobs`);
    children.add(child);
    if (job.state !== "ended") story.wrong("I2", `the job of ${child} is never ended`);
    const own = byFlow.get(String(job.flow_id)) ?? [];
    checkEnds(story, books, job);
    const told = toldOf(books, job, own);
    checkTold(story, job, told);
    checkStatus(story, job, told, own);
  }
  checkCleanup(story, books);
}
