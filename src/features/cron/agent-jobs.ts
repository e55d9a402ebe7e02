// Makes and removes the jobs of agents (tool `cron`). Such a job runs in the session that made it, with the
// rights of that session (I13), and its answer goes to the chat that asked.
// AG1: a call that is repeated after a crash makes no second job.
// AG2: a session sees and removes only its own jobs. Their number, message, interval and first date are
//      limited.

import { readDuration } from "../../core/duration.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { isInHouse } from "../../core/shapes/route.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { quoted } from "../../core/text/cut.ts";
import { checkLabel } from "../../core/text/label.ts";
import type { Engine } from "../../engine/engine.ts";
import type { RunWait } from "../../engine/lanes/waits.ts";
import type { Unit } from "../../engine/unit.ts";
import { storedLabels } from "../../tools/guidance/guard.ts";
import { checkWords } from "../../triggers/choices.ts";
import { type Calendar, readSchedule, zoneOf } from "./dates.ts";
import {
  AGENT_EVERY_MIN_MS,
  AGENT_HORIZON_MAX_MS,
  AGENT_JOB_MESSAGE_MAX_CHARS,
  AGENT_JOBS_MAX,
  type AgentJobRequest,
  type CronJob,
  type Schedule,
  SESSION_JOBS_MAX,
} from "./job.ts";
import { dropJob, enable, storeHasRoom, storeJob } from "./jobs.ts";
import { localTime, readMoment } from "./moments.ts";
import { countJobsMadeBy, holdJob, jobsOfSession } from "./store.ts";

interface AgentJobParts {
  /** Returns the engine. A function, because the engine is created later. */
  engine(): Engine;
  /** Returns the time zone in which times are read and shown. */
  timeZone(): string;
}

/** A calling session, its run, and the stable id of the call. */
interface Call {
  readonly session: Session;
  readonly run: Run;
  readonly wait?: RunWait | undefined;
  readonly callId: string;
}

function everyOf(text: string): Result<number> {
  const everyMs = readDuration(text);
  const hint = 'Use a duration like "30 minutes" or "2 hours".';
  if (everyMs === undefined) {
    return fail("invalid_argument", `every: ${quoted(text, 80)} is not a duration`, { hint });
  }
  if (everyMs >= AGENT_EVERY_MIN_MS) return ok(everyMs);
  return fail("invalid_argument", "every: the shortest interval is one minute", { hint });
}

/** Returns the schedule that a call describes. The failure names the arguments of the call. */
async function scheduleOf(asked: AgentJobRequest, calendar: Calendar): Promise<Result<Schedule>> {
  const { at, every, cron } = asked;
  if ([at, every, cron].filter((one) => one !== undefined).length !== 1) {
    return fail("invalid_argument", "add needs exactly one of at, every and cron");
  }
  if (at !== undefined) {
    const atMs = readMoment(at, calendar);
    return atMs.ok ? ok({ kind: "at", atMs: atMs.value }) : atMs;
  }
  if (every !== undefined) {
    const everyMs = everyOf(every);
    return everyMs.ok ? readSchedule({ kind: "every", everyMs: everyMs.value }, calendar) : everyMs;
  }
  const read = await readSchedule({ kind: "cron", expr: cron ?? "" }, calendar);
  return read.ok ? read : { ...read, error: `cron: ${read.error}` };
}

/** Checks that the calling run still holds its lane (I1). */
async function holds(unit: Unit, { wait }: Call): Promise<Result<void>> {
  if (wait === undefined || (await wait.holds(unit))) return ok(undefined);
  return fail("run_aborted", "the calling run has ended; nothing was changed");
}

/** Checks that a session and its agent may have another job (AG2). */
async function hasRoom(unit: Unit, { session }: Call): Promise<Result<void>> {
  const room = await storeHasRoom(unit);
  if (!room.ok) return room;
  const hint = "Remove a job that is no longer needed: action remove.";
  if ((await jobsOfSession(unit.tx, session.key)).length >= SESSION_JOBS_MAX) {
    return fail("too_many_jobs", `this session has ${SESSION_JOBS_MAX} jobs, the maximum`, { hint });
  }
  if ((await countJobsMadeBy(unit.tx, session.agentId)) < AGENT_JOBS_MAX) return ok(undefined);
  return fail("too_many_jobs", `your sessions have made ${AGENT_JOBS_MAX} jobs, the maximum`, { hint });
}

/** Writes the job, unless its first date is too far away. */
async function make(unit: Unit, call: Call, asked: AgentJobRequest, schedule: Schedule) {
  const { session, run, callId } = call;
  const deliver = run.route === undefined || isInHouse(run.route) ? undefined : run.route;
  const labels = await storedLabels({ db: unit.tx, session, run, ...optional({ wait: call.wait }) });
  const made = await enable(
    {
      id: unit.newId(),
      schedule,
      agentId: session.agentId,
      message: asked.message,
      enabled: true,
      missed: "once",
      conversation: "keep",
      timeoutMs: 0,
      createdAt: unit.now,
      updatedAt: unit.now,
      sessionKey: session.key,
      callId,
      ...optional({ name: asked.name, deliver, labels }),
    },
    unit.now,
  );
  if (!made.ok) return made;
  if ((made.value.nextAt ?? 0) - unit.now > AGENT_HORIZON_MAX_MS) {
    return fail("invalid_argument", "the first date is more than five years away", {
      hint: "Choose an earlier date.",
    });
  }
  await storeJob(unit, made.value, true);
  return made;
}

export function createAgentJobs({ engine, timeZone }: AgentJobParts) {
  const now = () => ({ now: localTime(engine().now(), timeZone()), timeZone: timeZone() });
  return {
    now,
    format: (atMs: number): string => localTime(atMs, timeZone()),

    async add(call: Call, asked: AgentJobRequest): Promise<Result<CronJob>> {
      const known = await jobsOfSession(engine().store.db, call.session.key);
      const before = known.find(({ callId }) => callId === call.callId);
      if (before !== undefined) return ok(before);
      const words = checkWords("message", asked.message, AGENT_JOB_MESSAGE_MAX_CHARS);
      if (!words.ok) return words;
      const name = asked.name === undefined ? ok(undefined) : checkLabel(asked.name, "name");
      if (!name.ok) return name;
      const zone = zoneOf(asked.timeZone ?? timeZone());
      if (!zone.ok) return { ...zone, error: `timeZone: ${zone.error}` };
      const schedule = await scheduleOf(asked, { now: engine().now(), zone: zone.value });
      if (!schedule.ok) return schedule;
      const open = engine().accepting();
      if (!open.ok) return open;
      return engine().commit(async (unit): Promise<Result<CronJob>> => {
        const held = await holds(unit, call);
        if (!held.ok) return held;
        const room = await hasRoom(unit, call);
        return room.ok ? make(unit, call, { ...asked, name: name.value }, schedule.value) : room;
      });
    },

    remove(call: Call, id: string): Promise<Result<string>> {
      return engine().commit(async (unit): Promise<Result<string>> => {
        const held = await holds(unit, call);
        if (!held.ok) return held;
        const job = await holdJob(unit.tx, id);
        if (job?.sessionKey !== call.session.key) {
          const ids = (await jobsOfSession(unit.tx, call.session.key)).map((one) => one.id);
          return fail("cron_job_not_found", `this session has made no job ${quoted(id, 80)}`, {
            hint: ids.length === 0 ? "It has no jobs." : `It has: ${ids.join(", ")}.`,
          });
        }
        await dropJob(unit, job);
        return ok(id);
      });
    },
  };
}
