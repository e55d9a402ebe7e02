// Implements the tool `cron`, with which an agent makes reminders and jobs for its own session.
// core/rules/tool-policy.ts decides which sessions have it; triggers/agent-jobs.ts makes the jobs.
// TC1: a run of a chain in which a guest wrote makes, sees and removes no jobs (as ME3 of
//      core/rules/prompt/memory.ts). Only runs do: an operator has the methods `cron.*`.

import type { ToolResultOf } from "../contract/tools.ts";
import { optional } from "../core/optional.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { AGENT_JOB_MESSAGE_MAX_CHARS, type CronJob, scheduleWords } from "../core/shapes/schedule.ts";
import { jobsOfSession, lastTurns, type Turn } from "../store/queries/cron-jobs.ts";
import { textLimit } from "./arguments.ts";
import { type CallerContext, type JobDoor, type Tool, tool, type WritingContext } from "./tool.ts";

export interface CronContext extends CallerContext, WritingContext {
  /** Absent if the caller is not a run of this gateway. */
  readonly jobs?: JobDoor | undefined;
}

const WORD_MAX_CHARS = 200;

type Answer = ToolResultOf<"cron">;
type JobRow = Extract<Answer, { readonly job: unknown }>["job"];

function lastWords({ state, code, error }: Turn): string {
  return [state ?? "skipped", code, error].filter((part) => part !== undefined).join(": ");
}

function jobRow(ctx: CronContext, door: JobDoor, job: CronJob, last?: Turn): JobRow {
  const { redactor } = ctx.engine;
  const { id, name, message, schedule, createdAt, nextAt } = job;
  return {
    id,
    message: redactor.mask(message),
    schedule: scheduleWords(schedule),
    createdAt,
    ...optional({
      name: name && redactor.mask(name),
      next: nextAt === undefined ? undefined : door.format(nextAt),
      nextAt,
      last: last && redactor.mask(lastWords(last)),
    }),
  };
}

export const cronTool: Tool<CronContext> = tool("cron", {
  limits: {
    message: textLimit(AGENT_JOB_MESSAGE_MAX_CHARS),
    at: textLimit(WORD_MAX_CHARS),
    every: textLimit(WORD_MAX_CHARS),
    cron: textLimit(WORD_MAX_CHARS),
    timeZone: textLimit(WORD_MAX_CHARS),
    name: textLimit(WORD_MAX_CHARS),
    id: textLimit(WORD_MAX_CHARS),
  },
  async execute(ctx, args, { callId }): Promise<Result<Answer>> {
    const { jobs: door, run, session, wait } = ctx;
    if (door === undefined || run === undefined) {
      const error = "only a run of the session's agent may use this tool";
      return fail("tool_denied", error, { hint: "Operators use cron.add, cron.list and cron.remove." });
    }
    if (run.input.guest === true) {
      const error = "this conversation began with somebody who may not make jobs";
      return fail("tool_denied", error, { hint: "Only owners and tokens for every session may." });
    }
    const call = { session, run, callId, wait };
    const { action, id, message, name, at, every, cron, timeZone } = args;
    switch (action) {
      case "list": {
        const jobs = await jobsOfSession(ctx.db, session.key);
        const last = await lastTurns(
          ctx.db,
          jobs.map((job) => job.id),
        );
        const rows = jobs.map((job) => jobRow(ctx, door, job, last.get(job.id)));
        return ok({ count: rows.length, jobs: rows, ...door.now() });
      }
      case "remove": {
        if (id === undefined) return fail("invalid_argument", "remove needs id; list returns the ids");
        const removed = await door.remove(call, id);
        return removed.ok ? ok({ status: "ok", removed: removed.value, ...door.now() }) : removed;
      }
      case "add": {
        if (message === undefined) return fail("invalid_argument", "add needs message");
        const made = await door.add(call, { message, name, at, every, cron, timeZone });
        return made.ok ? ok({ status: "ok", job: jobRow(ctx, door, made.value), ...door.now() }) : made;
      }
    }
  },
});
