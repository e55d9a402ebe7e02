// Lists the methods that clients of version 4 call in another form, or under another name.

import type { ChannelRow } from "../../contract/methods/channels.ts";
import type { LogLine } from "../../contract/methods/operations.ts";
import { type Fields, integerOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { ok } from "../../core/shapes/errors.ts";
import { FEATURES } from "../../features.ts";
import { logCursor, seqInCursor } from "../methods/operations.ts";
import {
  agents,
  approval,
  approvals,
  historyWithReceipts,
  messageEvents,
  newestMessages,
  startupWithReceipts,
} from "./chat-forms.ts";
import { type Form, form } from "./form.ts";
import { systemEvent, wakeNamed } from "./system-forms.ts";

/** Maximum number of bytes of log lines in one answer, unless the request names another. */
const LOG_BYTES = 250_000;

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
const logs: Form<"logs.tail"> = {
  method: "logs.tail",
  params({ cursor, limit, maxBytes: _, ...rest }, { processId, lastLogLine }) {
    const seq = integerOf(cursor);
    const known = seq !== undefined && seq <= lastLogLine ? logCursor(processId, seq) : undefined;
    return ok({ ...rest, ...optional({ cursor: known, limit: integerOf(limit) }) });
  },
  payload(page, { cursor: asked, maxBytes }, { processId }) {
    const lines = linesThatFit(page.lines, integerOf(maxBytes) ?? LOG_BYTES);
    const cursor = seqInCursor(processId, page.cursor) ?? 0;
    const isReset = page.dropped > 0 || (integerOf(asked) ?? 0) > cursor;
    const truncated = page.more || lines.length < page.lines.length;
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
const channels: Form<"channels.status"> = {
  method: "channels.status",
  payload(page) {
    const accounts: Record<string, Fields[]> = {};
    for (const row of page.channels) {
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

/** By the name that the client sends. */
const FORMS: Readonly<Record<string, Form>> = {
  "agents.list": agents,
  "chat.history": historyWithReceipts,
  "chat.startup": startupWithReceipts,
  "sessions.get": newestMessages,
  "sessions.messages.subscribe": messageEvents,
  "sessions.messages.unsubscribe": messageEvents,
  "exec.approval.list": approvals,
  "exec.approval.resolve": approval,
  "logs.tail": logs,
  "channels.status": channels,
  "device.pair.remove": form({ method: "device.token.revoke" }),
  wake: wakeNamed,
  "system-event": systemEvent,
  // There are no heartbeats. The clients' page measures the duration of this call.
  "last-heartbeat": form({ method: "system-presence", payload: () => null }),
};

export async function formOf(method: string): Promise<Form | undefined> {
  if (Object.hasOwn(FORMS, method)) return FORMS[method];
  for (const { forms } of FEATURES) {
    const theirs = (await forms?.()) ?? {};
    if (Object.hasOwn(theirs, method)) return theirs[method] as Form;
  }
  return undefined;
}

const NO_SETUP_CODES = "Connect the device with the gateway's token; node.pair.approve pairs a node.";
const NO_UPGRADES = "Connect with a token that has these scopes (gateway.auth.tokens).";

/** Methods of version 4 that mean nothing here, each with the way to the same end. */
const INSTEAD: Readonly<Record<string, string>> = {
  "set-heartbeats": "There are no heartbeats; cron.add makes a scheduled job.",
  "system.info": "Use status, or metrics.history.",
  "device.pair.setupCode": NO_SETUP_CODES,
  "device.pair.setupStatus": NO_SETUP_CODES,
  "device.token.rotate":
    "device.token.revoke ends a token; connecting with the gateway's token gives the device a new one.",
  "device.scopes.requestUpgrade": NO_UPGRADES,
  "device.scopes.waitUpgrade": NO_UPGRADES,
};

/** Returns what to use in place of a method that only other gateways have. */
export function wayInstead(method: string): string | undefined {
  return Object.hasOwn(INSTEAD, method) ? INSTEAD[method] : undefined;
}
