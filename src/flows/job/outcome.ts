// Owns the outcome of a sub-agent's job: the status of its last run, its result as text, its cost. The status
// comes from the run. The text is the child's, also what it had written when it was stopped (I12).

import { optional } from "../../core/optional.ts";
import type { AnnouncedStatus, AnnouncementStats } from "../../core/rules/announcement.ts";
import { isSilent } from "../../core/rules/turn-rules.ts";
import { type Message, textOf } from "../../core/shapes/message.ts";
import { isEnded, type Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import type { Unit } from "../../engine/unit.ts";
import type { Flow } from "../../store/queries/chains/flows.ts";
import { usageOf } from "../../store/queries/runs/ledger.ts";
import { runsOfFlow } from "../../store/queries/runs/runs.ts";
import { lastToolResult, readRun } from "../../store/queries/transcripts/transcripts.ts";

interface Job {
  readonly unit: Unit;
  readonly flow: Flow;
  readonly child: Session;
  /** Returns the path of the readable copy of a transcript; undefined in a cluster. */
  transcriptPath(sessionId: string): string | undefined;
}

/** Returns the status of a run for an announcement. */
export function statusOf(run: Run | undefined): AnnouncedStatus {
  return run !== undefined && isEnded(run.state) ? run.state : "unknown";
}

/** Returns the outcome of the child's last work. */
export async function outcomeOf(job: Job): Promise<{ runs: Run[]; last: Run | undefined; result: string }> {
  const runs = (await runsOfFlow(job.unit.tx, job.flow.flowId)).filter((run) => run.flow?.step === "task");
  const last = runs.at(-1);
  const reply = last?.reply ?? "";
  if (!isSilent(reply)) return { runs, last, result: reply };
  const written = last === undefined || last.state === "ok" ? undefined : await lastWords(job.unit, runs);
  const result = written ?? (await lastToolResult(job.unit.tx, job.child.sessionId)) ?? "";
  return { runs, last, result };
}

/** Returns the unfinished text of a failed job. */
async function lastWords(unit: Unit, runs: readonly Run[]): Promise<string | undefined> {
  const speaks = (message: Message): boolean => message.role === "assistant" && !isSilent(textOf(message));
  for (const run of runs.toReversed()) {
    const message = (await readRun(unit.tx, run.runId)).findLast(speaks);
    if (message !== undefined) return textOf(message);
  }
  return undefined;
}

/** Returns the figures of a job for its announcement. */
export async function statsOf(job: Job, runs: readonly Run[]): Promise<AnnouncementStats> {
  const { unit, child } = job;
  // A run that ended while it waited in its lane has no duration.
  const begun = runs.filter((run) => run.startedAt !== undefined);
  const started = Math.min(...begun.map((run) => run.startedAt ?? unit.now));
  const ended = Math.max(...begun.map((run) => run.endedAt ?? unit.now));
  const usage = await usageOf(unit.tx, { sessionKey: child.key });
  const path = job.transcriptPath(child.sessionId);
  return {
    runtimeMs: begun.length === 0 ? 0 : ended - started,
    inputTokens: usage.input + usage.cacheRead + usage.cacheWrite,
    outputTokens: usage.output,
    totalTokens: usage.totalTokens,
    ...(usage.cost > 0 ? { costUsd: usage.cost } : {}),
    sessionKey: child.key,
    sessionId: child.sessionId,
    ...optional({ transcriptPath: path }),
  };
}
