// Lists the methods that clients of version 4 call in another form, or under another name.

import type { ChannelRow } from "../../contract/methods/channels.ts";
import type { CronJobRow } from "../../contract/methods/cron.ts";
import type { LogLine } from "../../contract/methods/operations.ts";
import { type Fields, integerOf, objectsOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { ok } from "../../core/shapes/errors.ts";
import { jobShown, jobsShown, jobToAdd, jobToChange, turnsShown, withJobId } from "./cron-form.ts";
import type { Form } from "./form.ts";

/** Maximum number of bytes of log lines in one answer, unless the request names another. */
const LOG_BYTES = 250_000;
const LOG_LINES_MAX = 500;
const DEVICES_MAX = 10_000;

const jobOf = (payload: Fields): unknown => jobShown(payload.job as CronJobRow);

/** Returns the newest lines that fit, as texts. */
function linesThatFit(lines: readonly LogLine[], bytesMax: number): string[] {
  const shown: string[] = [];
  let bytes = 0;
  for (const { time, msg, seq: _, ...rest } of lines.toReversed()) {
    const line = JSON.stringify({ time: new Date(time).toISOString(), message: msg, ...rest });
    bytes += Buffer.byteLength(line);
    if (bytes > bytesMax) break;
    shown.push(line);
  }
  return shown.reverse();
}

/** The cursor of such a client is a number. If it is of an earlier process, the newest lines are returned. */
const logs: Form = {
  method: "logs.tail",
  params({ cursor, limit, maxBytes: _, ...rest }, { processId, lastLogLine }) {
    const seq = integerOf(cursor);
    const known = seq !== undefined && seq <= lastLogLine ? `${processId.slice(0, 8)}-${seq}` : undefined;
    const lines = integerOf(limit);
    return ok({ ...rest, ...optional({ cursor: known, limit: lines && Math.min(lines, LOG_LINES_MAX) }) });
  },
  payload(page, { cursor: asked, maxBytes }) {
    const all = page.lines as readonly LogLine[];
    const lines = linesThatFit(all, integerOf(maxBytes) ?? LOG_BYTES);
    const cursor = Number(String(page.cursor).split("-").at(-1));
    const isReset = Number(page.dropped) > 0 || (integerOf(asked) ?? 0) > cursor;
    const truncated = page.more === true || lines.length < all.length;
    return { file: "the gateway's log", cursor, size: cursor, lines, truncated, reset: isReset };
  },
};

function accountShown(row: ChannelRow, accountId: string): Fields {
  const { configured, state, connectedSince, lastError, lastErrorAt, lastSentAt } = row;
  return {
    accountId,
    enabled: true,
    configured,
    running: state !== "down" && state !== "idle",
    connected: row.ok,
    ...optional({ lastConnectedAt: connectedSince, lastError, lastErrorAt, lastOutboundAt: lastSentAt }),
  };
}

/** Channels by name, each with its accounts. Webhooks, MCP servers and ACP agents are no channels there. */
const channels: Form = {
  method: "channels.status",
  payload(page) {
    const rows = page.channels as readonly ChannelRow[];
    const accounts: Record<string, Fields[]> = {};
    for (const row of rows) {
      if (row.kind !== "webchat" && row.kind !== "channel") continue;
      const [name = row.id, accountId = "default"] = row.id.split(":");
      accounts[name] = [...(accounts[name] ?? []), accountShown(row, accountId)];
    }
    const names = Object.keys(accounts);
    const byName = (of: (name: string) => unknown) =>
      Object.fromEntries(names.map((name) => [name, of(name)]));
    return {
      channelOrder: names,
      channelLabels: byName((name) => name),
      channels: byName((name) => accounts[name]?.[0]),
      channelAccounts: accounts,
      channelDefaultAccountId: byName((name) => accounts[name]?.[0]?.accountId),
    };
  },
};

/** Devices need no acceptance here, so none is pending. */
const devices: Form = {
  method: "device.token.list",
  payload: (page) => ({
    pending: [],
    paired: objectsOf(page.devices, DEVICES_MAX).map(({ lastUsedAtMs: lastSeenAtMs, ...device }) => ({
      ...device,
      roles: [device.role],
      lastSeenAtMs,
    })),
  }),
};

/** By the name that the client sends. */
const FORMS: Readonly<Record<string, Form>> = {
  "cron.list": { method: "cron.list", payload: jobsShown },
  "cron.get": { method: "cron.get", params: withJobId, payload: (job) => jobShown(job as never) },
  "cron.status": {
    method: "cron.list",
    params: () => ok({ limit: 1 }),
    payload: ({ enabled, total, nextRunAtMs }) => ({
      enabled,
      jobs: total,
      nextWakeAtMs: nextRunAtMs ?? null,
    }),
  },
  "cron.add": {
    method: "cron.add",
    params: (given, { settings }) => jobToAdd(given, settings),
    payload: jobOf,
  },
  "cron.update": {
    method: "cron.update",
    params: (given, { settings }) => jobToChange(given, settings),
    payload: jobOf,
  },
  "cron.remove": { method: "cron.remove", params: withJobId },
  "cron.run": {
    method: "cron.run",
    params: withJobId,
    payload: (started) => ({ ...started, enqueued: true }),
  },
  "cron.runs": { method: "cron.runs", params: withJobId, payload: turnsShown },
  "logs.tail": logs,
  "channels.status": channels,
  "device.pair.list": devices,
  "device.pair.remove": { method: "device.token.revoke" },
};

export function formOf(method: string): Form | undefined {
  return Object.hasOwn(FORMS, method) ? FORMS[method] : undefined;
}
