// Describes heartbeats and the daily reset of a source, which are settings there, as scheduled jobs in the
// source's form. jobs.ts converts them like all others.

import type { Tree } from "../../config/source.ts";
import { fieldsOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { countIn, textIn } from "./fields.ts";

/** Settings of a source that say what its agents do by themselves. */
export interface RoutineSettings {
  /** The settings of each agent that has its own ones. */
  readonly heartbeats: ReadonlyMap<string, Tree>;
  readonly heartbeatDefaults?: Tree;
  /** Hour of the daily reset. Absent: there is none. */
  readonly resetHour?: number;
  readonly timeZone?: string;
}

interface RoutineAgents {
  readonly ids: readonly string[];
  readonly defaultId: string;
}

/** The program's prefix of its own jobs that are heartbeats. The agent's id follows. */
const HEARTBEAT = "heartbeat:";
const PROMPT =
  "Read HEARTBEAT.md in your workspace if it exists, and follow it. Do not infer or repeat old tasks from " +
  "earlier conversations. If nothing needs attention, answer HEARTBEAT_OK.";
const UNITS: Readonly<Record<string, number>> = {
  "": 60_000,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const HOUR_MS = 3_600_000;

/** Returns a duration like `30m` or `1h30m` in ms. A number without a unit is in minutes. */
function durationIn(value: unknown): number | undefined {
  const text = typeof value === "number" ? String(value) : (textIn(value, 40)?.toLowerCase() ?? "");
  if (!/^(\d+(\.\d+)?\s*(ms|[smhd])?\s*)+$/.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*(ms|[smhd])?/g)];
  return parts.reduce((sum, [, count, unit = ""]) => sum + Number(count) * (UNITS[unit] ?? 1), 0);
}

const hourIn = (value: unknown): number | undefined => {
  const [, hour] = /^(\d{1,2}):00$/.exec(textIn(value, 5) ?? "") ?? [];
  return hour === undefined || Number(hour) > 24 ? undefined : Number(hour);
};

/** Returns a cron expression for an interval within some hours of the day, if there is one. */
function exprWithin(everyMs: number, start: number, end: number): string | undefined {
  const length = (end - start + 24) % 24 || (start === end ? 0 : 24);
  const minutes = everyMs / 60_000;
  const step = Math.max(1, everyMs / HOUR_MS);
  const hours = Array.from({ length }, (_, at) => at).filter((at) => at % step === 0);
  const fits = minutes < 60 ? 60 % minutes === 0 : Number.isInteger(step);
  if (!fits || hours.length === 0) return undefined;
  const list = hours.map((at) => (start + at) % 24).sort((a, b) => a - b);
  return `${minutes < 60 ? `*/${minutes}` : "0"} ${list.join(",")} * * *`;
}

/** Returns the schedule of a heartbeat, or undefined if it is off. */
function scheduleIn(settings: Tree, row: Tree, timeZone: string | undefined): Tree | undefined {
  const everyMs = durationIn(settings.every) ?? countIn(fieldsOf(row.schedule).everyMs) ?? 30 * 60_000;
  if (everyMs === 0 || (settings.every === undefined && row.enabled === false)) return undefined;
  const { start, end, timezone } = fieldsOf(settings.activeHours);
  const [from, to] = [hourIn(start), hourIn(end)];
  const expr = from === undefined || to === undefined ? undefined : exprWithin(everyMs, from, to);
  const own = textIn(timezone, 100);
  const tz = own === undefined || own === "user" || own === "local" ? timeZone : own;
  return expr === undefined ? { kind: "every", everyMs } : { kind: "cron", expr, ...optional({ tz }) };
}

function heartbeatOf(agentId: string, settings: Tree, row: Tree, timeZone: string | undefined): Tree[] {
  const schedule = scheduleIn(settings, row, timeZone);
  if (schedule === undefined) return [];
  const target = textIn(settings.target, 64) ?? "owner";
  const channel = target === "owner" ? "last" : target;
  const to = { to: settings.to, accountId: settings.accountId };
  const text = [textIn(settings.prompt, 8_000) ?? PROMPT, textIn(row.scratch, 7_000)];
  return [
    {
      ...{ id: `${HEARTBEAT}${agentId}`, name: `Heartbeat (${agentId})`, agentId, schedule },
      ...{
        createdAtMs: row.createdAtMs,
        sessionTarget: settings.isolatedSession === true ? "isolated" : "main",
      },
      payload: { kind: "systemEvent", text: text.filter((one) => one !== undefined).join("\n\n") },
      delivery: target === "none" ? { mode: "none" } : { mode: "announce", channel, ...to },
    },
  ];
}

/** Returns whether a job of the source is a heartbeat, which `routineJobs` describes. */
export const isHeartbeat = (job: unknown): boolean =>
  String(fieldsOf(job).declarationKey).startsWith(HEARTBEAT);

/** Returns the jobs. `known`: the source's own jobs, among which are the heartbeats of newer versions. */
export function routineJobs(
  settings: RoutineSettings,
  agents: RoutineAgents,
  known: readonly unknown[],
): Tree[] {
  const { heartbeats, heartbeatDefaults, resetHour, timeZone } = settings;
  const rows = new Map(
    known.flatMap((job): [string, Tree][] => {
      const key = textIn(fieldsOf(job).declarationKey, 200) ?? "";
      return key.startsWith(HEARTBEAT) ? [[key.slice(HEARTBEAT.length), fieldsOf(job)]] : [];
    }),
  );
  // If an agent has settings of its own, the agents without them have no heartbeat.
  const all = rows.size > 0 ? [...rows.keys()] : heartbeatDefaults === undefined ? [] : [agents.defaultId];
  const beating = (heartbeats.size > 0 ? [...heartbeats.keys()] : all).filter((id) =>
    agents.ids.includes(id),
  );
  const beats = beating.flatMap((id) =>
    heartbeatOf(id, { ...heartbeatDefaults, ...heartbeats.get(id) }, rows.get(id) ?? {}, timeZone),
  );
  const resets = agents.ids.map((agentId) => ({
    ...{ id: `daily-reset:${agentId}`, name: `Daily reset (${agentId})`, agentId, sessionTarget: "main" },
    schedule: { kind: "cron", expr: `0 ${resetHour} * * *`, ...optional({ tz: timeZone }) },
    payload: { kind: "systemEvent", text: "/reset" },
    delivery: { mode: "none" },
  }));
  return [...beats, ...(resetHour === undefined ? [] : resets)];
}
