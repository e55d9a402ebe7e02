// The shape of scheduled jobs, their limits, and descriptions of schedules. dates.ts computes due
// times, because that needs a calendar with time zones.
// A stored schedule is complete: it contains its time zone and start, so it means the same on every machine
// and after every restart.

import { readerOfAnswer } from "../../core/rules/turn-rules.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import type { Route } from "../../core/shapes/route.ts";
import { formatKey } from "../../core/shapes/session-key.ts";

/** Defines when a job runs. Times are ms since 1970. */
export type Schedule =
  /** Five cron fields, interpreted in a time zone. */
  | { readonly kind: "cron"; readonly expr: string; readonly tz: string }
  /** Due at `anchorMs`, and again after each interval. */
  | { readonly kind: "every"; readonly everyMs: number; readonly anchorMs: number }
  /** Once. */
  | { readonly kind: "at"; readonly atMs: number };

export const SCHEDULE_KINDS = ["cron", "every", "at"] as const;

/** Policies for a due time that passed while no gateway was running: run the job once, or skip it. */
export const MISSED_POLICIES = ["once", "skip"] as const;
export type MissedPolicy = (typeof MISSED_POLICIES)[number];

/** Conversation of a run: the one of the run before it, or a new one in the same session. */
export const JOB_CONVERSATIONS = ["keep", "fresh"] as const;
export type JobConversation = (typeof JOB_CONVERSATIONS)[number];

/** A message that is sent to an agent at set times, in the session `cron:<id>` or in its own session. */
export interface CronJob {
  readonly id: string;
  readonly name?: string;
  readonly schedule: Schedule;
  readonly agentId: string;
  /** In a session that is not its own, `/reset` starts a new conversation instead of a run. */
  readonly message: string;
  /** False if the job is paused, or if no due time is left. */
  readonly enabled: boolean;
  readonly missed: MissedPolicy;
  readonly conversation: JobConversation;
  /** Destination of replies, in addition to the transcript. */
  readonly deliver?: Route;
  /** `<provider>/<model>`. Absent: the model of the session, else of the agent. */
  readonly model?: string;
  readonly thinking?: string;
  /** Maximum duration of a run from its start; 0: no limit. */
  readonly timeoutMs: number;
  /** Time of the next run. Absent if the job is not enabled. */
  readonly nextAt?: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Name of the token whose rights the job has (triggers/creator.ts). Absent: the rights of the gateway. */
  readonly createdBy?: string;
  /** Key of the session in which it runs. Absent: a session of its own, `cron:<id>`. */
  readonly sessionKey?: string;
  /**
   * Stable id of the tool call that made the job, so that a repeated call makes no second one. The agent of
   * `sessionKey` made it, and it has the rights of that session. Absent: a person made it.
   */
  readonly callId?: string;
  /** Labels of the texts that the agent had read when it made the job. Its runs have them, too. */
  readonly labels?: Labels;
}

/** A job that an agent wants to make. Times are as its model wrote them. */
export interface AgentJobRequest {
  readonly message: string;
  readonly name?: string | undefined;
  /** One of these three. */
  readonly at?: string | undefined;
  readonly every?: string | undefined;
  readonly cron?: string | undefined;
  readonly timeZone?: string | undefined;
}

/** The kind of the stored deadline for a job's next date. */
export const CRON_DEADLINE = "cron";

export const JOBS_MAX = 1_000;
/** Number of past runs kept for each job. */
export const TURNS_KEPT = 100;
/** Minimum interval. A shorter one would be a loop rather than a schedule. */
export const EVERY_MIN_MS = 10_000;
export const EVERY_MAX_MS = 10 * 366 * 86_400_000;
/** Latest possible time: the end of the year 9999. */
export const DATE_MAX_MS = 253_402_300_799_999;

export const SESSION_JOBS_MAX = 20;
/** Maximum number of jobs that all sessions of one agent may have made. */
export const AGENT_JOBS_MAX = 100;
export const AGENT_EVERY_MIN_MS = 60_000;
/** Latest first date of a job that an agent makes, from now on. */
export const AGENT_HORIZON_MAX_MS = 5 * 366 * 86_400_000;
export const AGENT_JOB_MESSAGE_MAX_CHARS = 4_000;

/** Returns the key of the session in which a job runs. */
export function jobKey({ id, sessionKey }: Pick<CronJob, "id" | "sessionKey">): string {
  return sessionKey ?? formatKey({ form: "cron", id });
}

const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
];

/** Formats a duration in at most two units: `15 minutes`, `1 day and 12 hours`. */
function durationWords(ms: number): string {
  const parts: string[] = [];
  let left = ms;
  for (const [name, size] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) parts.push(`${count === 1 ? "" : `${count} `}${name}${count === 1 ? "" : "s"}`);
  }
  const [first = "second", second] = parts;
  if (second === undefined) return first;
  const one = (text: string): string => (/^\d/.test(text) ? text : `1 ${text}`);
  return `${one(first)} and ${one(second)}`;
}

const DAY_NAMES = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/** Returns the value of a cron field if it is a single number of at most two digits. */
const numberOf = (field: string): number | undefined => (/^\d{1,2}$/.test(field) ? Number(field) : undefined);

function ordinal(day: number): string {
  const last = day % 10;
  const suffix = day >= 11 && day <= 13 ? "th" : (["th", "st", "nd", "rd"][last] ?? "th");
  return `${day}${suffix}`;
}

/** Describes the days of a common cron expression. Returns undefined for an uncommon one. */
function dayWords(day: string, month: string, weekday: string): string | undefined {
  if (month !== "*") return undefined;
  if (day === "*" && weekday === "*") return "every day";
  if (day !== "*") {
    const number = numberOf(day);
    return weekday === "*" && number !== undefined ? `on the ${ordinal(number)} of each month` : undefined;
  }
  if (/^(1-5|mon-fri)$/i.test(weekday)) return "Monday to Friday";
  if (/^(0,6|6,0|6,7|6-7|sat,sun|sat-sun)$/i.test(weekday)) return "Saturday and Sunday";
  const name =
    DAY_NAMES[numberOf(weekday) ?? -1] ??
    DAY_NAMES.find((one) => weekday.toLowerCase() === one.slice(0, 3).toLowerCase());
  return name === undefined ? undefined : `every ${name}`;
}

const NICKNAMES: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
};

function exprWords(expr: string): string | undefined {
  const text = NICKNAMES[expr.toLowerCase()] ?? expr;
  const [minute = "", hour = "", day = "", month = "", weekday = "", ...more] = text.split(" ");
  if (more.length > 0 || weekday === "") return undefined;
  const days = dayWords(day, month, weekday);
  if (days === undefined) return undefined;
  const [m, h] = [numberOf(minute), numberOf(hour)];
  const at =
    m === undefined || h === undefined
      ? undefined
      : `at ${String(h).padStart(2, "0")}:${String(m).padStart(2, "0")}`;
  if (at !== undefined) return `${days} ${at}`;
  if (days !== "every day" || hour !== "*") return undefined;
  const step = /^\*\/(\d{1,2})$/.exec(minute)?.[1];
  if (minute === "*" || step === "1") return "every minute";
  if (step !== undefined) return 60 % Number(step) === 0 ? `every ${step} minutes` : undefined;
  const past = numberOf(minute);
  if (past === undefined) return undefined;
  return past === 0 ? "every hour" : `every hour, ${past} minute${past === 1 ? "" : "s"} past`;
}

/** Describes a schedule for people. Common expressions become words; uncommon ones are unchanged. */
export function scheduleWords(schedule: Schedule): string {
  switch (schedule.kind) {
    case "every":
      return `every ${durationWords(schedule.everyMs)}`;
    case "at":
      return "once";
    case "cron":
      return exprWords(schedule.expr) ?? schedule.expr;
  }
}

const CRON_HEADING = "Scheduled job context";

/** Returns the context of a job's run: the schedule, who reads the answer, and how to send nothing. */
export function cronContext(job: Pick<CronJob, "name" | "schedule" | "deliver" | "callId">): string {
  const name = job.name === undefined ? "" : ` ${JSON.stringify(job.name)}`;
  const when = scheduleWords(job.schedule);
  return [
    CRON_HEADING,
    "",
    `This is a scheduled job${name} (${JSON.stringify(when)}).`,
    job.callId === undefined
      ? "Its message was written beforehand, and nobody waits for the answer."
      : "You made it in this session for now, with the tool cron: do what its message says.",
    readerOfAnswer(job.deliver !== undefined),
  ].join("\n");
}
