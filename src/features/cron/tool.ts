// Implements the tool `cron`, with which an agent makes reminders and jobs for its own session.
// rules.ts decides which sessions have it; agent-jobs.ts makes the jobs.
// TC1: a run of a chain in which a guest wrote makes, sees and removes no jobs (as ME3 of
//      core/rules/prompt/memory.ts). Only runs do: an operator has the methods `cron.*`.

import type { ToolResultOf } from "../../contract/tools.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { textLimit } from "../../tools/arguments.ts";
import { type CallerContext, tool as createTool, type Tool, type WritingContext } from "../../tools/tool.ts";
import { createAgentJobs } from "./agent-jobs.ts";
import { AGENT_JOB_MESSAGE_MAX_CHARS, type CronJob, scheduleWords } from "./job.ts";
import { jobsOfSession, lastTurns, type Turn } from "./store.ts";

type CronContext = CallerContext & WritingContext;
type AgentJobs = ReturnType<typeof createAgentJobs>;

const WORD_MAX_CHARS = 200;

type Answer = ToolResultOf<"cron">;
type JobRow = Extract<Answer, { readonly job: unknown }>["job"];

function lastWords({ state, code, error }: Turn): string {
  return [state ?? "skipped", code, error].filter((part) => part !== undefined).join(": ");
}

function jobRow(ctx: CronContext, door: AgentJobs, job: CronJob, last?: Turn): JobRow {
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

export const tool: Tool<CronContext> = createTool("cron", {
  limits: {
    message: textLimit(AGENT_JOB_MESSAGE_MAX_CHARS),
    at: textLimit(WORD_MAX_CHARS),
    every: textLimit(WORD_MAX_CHARS),
    cron: textLimit(WORD_MAX_CHARS),
    timeZone: textLimit(WORD_MAX_CHARS),
    name: textLimit(WORD_MAX_CHARS),
    id: textLimit(WORD_MAX_CHARS),
  },
  sink: ({ session, run }, { action, message = "", at, every, cron }) =>
    action === "add" && run?.input.guest !== true
      ? { kind: "job", to: session.key, payload: [at ?? every ?? cron, message].join(": ") }
      : undefined,
  async execute(ctx, args, { callId }): Promise<Result<Answer>> {
    const { run, session, wait, timeZone } = ctx;
    if (timeZone === undefined || run === undefined) {
      const error = "only a run of the session's agent may use this tool";
      return fail("tool_denied", error, { hint: "Operators use cron.add, cron.list and cron.remove." });
    }
    if (run.input.guest === true) {
      const error = "this conversation began with somebody who may not make jobs";
      return fail("tool_denied", error, { hint: "Only owners and tokens for every session may." });
    }
    const door = createAgentJobs({ engine: () => ctx.engine, timeZone });
    const call = { session, run, callId, wait };
    const { action, id, message, name, at, every, cron } = args;
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
        const made = await door.add(call, { message, name, at, every, cron, timeZone: args.timeZone });
        return made.ok ? ok({ status: "ok", job: jobRow(ctx, door, made.value), ...door.now() }) : made;
      }
    }
  },
});
