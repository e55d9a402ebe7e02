// Converts scheduled jobs of the source. They arrive paused: the source's own program may still run them, and
// nobody at this gateway has approved them. Enabling a job checks its schedule and computes its next date.

import { parseDate } from "../../core/date.ts";
import { type Fields, fieldsOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { LAST, type Route } from "../../core/shapes/route.ts";
import { isChannelId, type KeyRules, mainKeyOf } from "../../core/shapes/session-key.ts";
import {
  defaultAgent,
  findAgent,
  modelNames,
  type Settings,
  thinkingNamed,
} from "../../core/shapes/settings/settings.ts";
import {
  type CronJob,
  DATE_MAX_MS,
  EVERY_MAX_MS,
  EVERY_MIN_MS,
  JOBS_MAX,
  type Schedule,
} from "../cron/job.ts";
import { countIn, lineIn, routeIn, textIn, timeIn } from "./fields.ts";
import { derivedUuid } from "./ids.ts";
import { agentIdOf } from "./keys.ts";
import type { Remarks } from "./remarks.ts";

const MESSAGE_CHARS_MAX = 16_000;
const NAME_CHARS_MAX = 200;
const TIMEOUT_MAX_MS = 7 * 86_400_000;
/** Keys of jobs that the program declares for itself. */
const OF_THE_PROGRAM = /^(skill-collection-review|memory-core):/;
const PLAIN_ID = /^[a-z0-9][a-z0-9_-]{0,63}$/;

interface JobRules {
  readonly settings: Settings;
  readonly keys: KeyRules;
  readonly nowMs: number;
  readonly remarks: Remarks;
}

function zoneOf(name: unknown): string | undefined {
  const zone = textIn(name, 100) ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }) && zone;
  } catch {
    return undefined;
  }
}

/** Returns the schedule, or the reason why there is none here. */
function scheduleOf(value: unknown, nowMs: number): Schedule | string {
  const { kind, expr, tz, everyMs, anchorMs, at, atMs } = fieldsOf(value);
  if (kind === "at") {
    const date = typeof at === "string" ? parseDate(at) : (countIn(atMs ?? at) ?? Number.NaN);
    if (Number.isNaN(date) || date > DATE_MAX_MS) return "an invalid date";
    return date > nowMs ? { kind, atMs: date } : "a date that has passed";
  }
  if (kind === "every") {
    const every = countIn(everyMs);
    if (every === undefined || every < EVERY_MIN_MS || every > EVERY_MAX_MS)
      return "an interval that is too short or too long";
    return { kind, everyMs: every, anchorMs: timeIn(anchorMs, nowMs) ?? nowMs };
  }
  if (kind !== "cron") return "a trigger that is not a date";
  const fields = textIn(expr, 200)?.replaceAll(/\s+/g, " ");
  if (fields === undefined || (!fields.startsWith("@") && fields.split(" ").length !== 5))
    return "a cron expression without exactly five fields";
  const zone = zoneOf(tz);
  return zone === undefined ? "an unknown time zone" : { kind, expr: fields, tz: zone };
}

/** Returns where a job delivers. Older versions have that in the payload. */
function deliveryIn({ delivery, payload }: Fields, isInMain: boolean): Fields {
  if (delivery !== undefined) return fieldsOf(delivery);
  const { deliver, channel, provider, to, accountId } = fieldsOf(payload);
  const isDelivered = deliver === true || (deliver !== false && to !== undefined);
  if (isDelivered) return { mode: "announce", channel: channel ?? provider, to, accountId };
  return isInMain ? { mode: "announce" } : {};
}

/** Returns the place to which the source sends replies, or undefined if they stay in the session. */
function placeOf(delivery: Fields, agentId: string, rules: KeyRules): Route | undefined {
  const { mode, channel: named, to: target, accountId: account } = delivery;
  if (mode !== "announce") return undefined;
  const channel = textIn(named, 64)?.toLowerCase() ?? LAST;
  const to = lineIn(target, 512);
  if (channel === LAST || to === undefined) return { channel: LAST, to: mainKeyOf(agentId, rules) };
  if (!isChannelId(channel)) return undefined;
  const [, chat = to, threadId] = /^(.+):topic:(\d+)$/.exec(to) ?? [];
  return routeIn(channel, chat, lineIn(account, 128), threadId);
}

/** Returns the text for the agent, or the reason why there is none. */
function messageOf(payload: Fields): { readonly text: string } | string {
  const { kind } = payload;
  if (kind !== "agentTurn" && kind !== "systemEvent") {
    return typeof kind === "string" ? `a payload of kind ${kind.slice(0, 40)}` : "no payload";
  }
  const given = kind === "agentTurn" ? payload.message : payload.text;
  const text = typeof given === "string" ? given.trim().toWellFormed() : "";
  if (text === "") return "no message";
  return text.length > MESSAGE_CHARS_MAX ? "a message that is too long" : { text };
}

/** Returns the model of a job if it is configured here. */
function modelOf(payload: Fields, name: string, { settings, remarks }: JobRules): string | undefined {
  const model = textIn(payload.model, 200);
  if (model === undefined || modelNames(settings.providers).includes(model)) return model;
  remarks.note("jobs whose model is not configured here: they use the model of their agent", name);
  return undefined;
}

/** Converts one job. Returns undefined, with a remark, if it has no counterpart here. */
function jobOf(value: unknown, rules: JobRules): CronJob | undefined {
  const { settings, nowMs, remarks } = rules;
  const job = fieldsOf(value);
  const sourceId = textIn(job.id, 200);
  const name = lineIn(job.displayName ?? job.name, NAME_CHARS_MAX);
  const shown = name ?? sourceId ?? "a job without a name";
  const skip = (why: string): undefined => remarks.note(`jobs with ${why}, skipped`, shown) as undefined;
  if (sourceId === undefined) return skip("no id");
  if (OF_THE_PROGRAM.test(textIn(job.declarationKey, 200) ?? ""))
    return remarks.note("jobs that the source's program made for itself, skipped", shown) as undefined;
  const payload = fieldsOf(job.payload);
  const message = messageOf(payload);
  if (typeof message === "string") return skip(message);
  const schedule = scheduleOf(job.schedule, nowMs);
  if (typeof schedule === "string") return skip(schedule);
  const named = agentIdOf(textIn(job.agentId, 200) ?? "");
  const agentId = findAgent(settings, named ?? "")?.id ?? defaultAgent(settings).id;
  if (named !== undefined && named !== agentId)
    remarks.note("jobs of agents that are not configured here: they get the default agent", shown);
  const isInMain =
    job.sessionTarget === "main" || (payload.kind === "systemEvent" && job.sessionTarget === undefined);
  const model = modelOf(payload, shown, rules);
  if (isInMain && model !== undefined)
    remarks.note("jobs in a main session that name a model: they use that of the session", shown);
  const delivery = deliveryIn(job, isInMain);
  const deliver = placeOf(delivery, agentId, rules.keys);
  if (deliver === undefined && (delivery.mode ?? "none") !== "none")
    remarks.note("jobs that delivered to a place that is unknown here: replies stay in the session", shown);
  const seconds = countIn(payload.timeoutSeconds) ?? 0;
  const createdAt = timeIn(job.createdAtMs, nowMs) ?? nowMs;
  return {
    id: PLAIN_ID.test(sourceId) ? sourceId : derivedUuid("job", sourceId),
    schedule,
    agentId,
    message: message.text,
    enabled: false,
    missed: "once",
    // A job with a session of its own begins anew at each run in the source, too.
    conversation: isInMain ? "keep" : "fresh",
    timeoutMs: Math.min(seconds * 1_000, TIMEOUT_MAX_MS),
    createdAt,
    updatedAt: createdAt,
    ...optional({
      name,
      sessionKey: isInMain ? mainKeyOf(agentId, rules.keys) : undefined,
      deliver,
      model: isInMain ? undefined : model,
      thinking: thinkingNamed(textIn(payload.thinking, 40) ?? ""),
    }),
  };
}

/** Converts the jobs of a source. If two have the same id, the first one counts. */
export function mapJobs(values: readonly unknown[], rules: JobRules): CronJob[] {
  const jobs = new Map<string, CronJob>();
  for (const value of values) {
    if (jobs.size === JOBS_MAX) {
      rules.remarks.note(`jobs beyond the first ${JOBS_MAX}, skipped`);
      break;
    }
    const job = jobOf(value, rules);
    if (job !== undefined && !jobs.has(job.id)) jobs.set(job.id, job);
  }
  return [...jobs.values()];
}
