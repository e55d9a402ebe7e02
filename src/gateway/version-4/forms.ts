// Lists the methods that clients of version 4 call in another form, or under another name.

import type { ChannelRow } from "../../contract/methods/channels.ts";
import { type Fields, fieldsOf, integerOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok } from "../../core/shapes/errors.ts";
import { defaultAgent } from "../../core/shapes/settings/settings.ts";
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

/** Such a client expects that a session that it names is woken in both modes. */
const wakeNamed: Form<"wake"> = {
  method: "wake",
  params: (given) => ok(given.sessionKey === undefined ? given : { ...given, mode: "now" }),
};

/** The beginning of a line that only changes the presence of a device. */
const PRESENCE = "Node:";

/** The other params describe the device that sends the event. */
const systemEvent: Form<"wake"> = {
  method: "wake",
  params({ text, sessionKey, wake, idempotencyKey }) {
    if (textOf(text)?.trimStart().startsWith(PRESENCE) === true) {
      return fail("invalid_argument", "presence lines are not kept", {
        hint: "system-presence lists the connected clients.",
      });
    }
    const mode = wake === true ? "now" : "next-heartbeat";
    return ok({ text, mode, ...optional({ sessionKey, idempotencyKey }) });
  },
};

/** Maximum number of bytes of log lines in one answer, unless the request names another. */
const LOG_BYTES = 250_000;

/** The cursor of such a client is a number. If it is of an earlier process, the newest lines are returned. */
const logs: Form<"logs.tail"> = {
  method: "logs.tail",
  params({ cursor, limit, maxBytes: _, ...rest }, { processId, lastLogLine }) {
    const seq = integerOf(cursor);
    const known = seq !== undefined && seq <= lastLogLine ? logCursor(processId, seq) : undefined;
    return ok({ ...rest, ...optional({ cursor: known, limit: integerOf(limit) }) });
  },
  payload(page, { cursor: asked, maxBytes }, { processId }) {
    // The newest lines that fit.
    const shown: string[] = [];
    let bytes = 0;
    for (const { time, msg, seq: _, ...rest } of page.lines.toReversed()) {
      const line = JSON.stringify({ time: new Date(time).toISOString(), message: msg, ...rest });
      bytes += Buffer.byteLength(line);
      if (bytes > (integerOf(maxBytes) ?? LOG_BYTES)) break;
      shown.push(line);
    }
    const lines = shown.reverse();
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

const NOTHING_MISSING = { bins: [], anyBins: [], env: [], config: [], os: [] };

/** The skills that an agent has here are all in use: none needs a set-up. */
const skills: Form<"agents.prompt"> = {
  method: "agents.prompt",
  params: ({ agentId }, { settings }) => ok({ agentId: agentId ?? defaultAgent(settings).id }),
  payload: ({ agentId, skills: found }) => ({
    agentId,
    workspaceDir: "",
    managedSkillsDir: "",
    skills: found.map(({ name, description, folder }) => ({
      ...{ name, description, skillKey: name, source: "parley", bundled: false },
      ...{ filePath: `${folder}/SKILL.md`, baseDir: folder, always: false, disabled: false },
      ...{ blockedByAllowlist: false, blockedByAgentFilter: false, eligible: true, modelVisible: true },
      ...{ userInvocable: false, commandVisible: false, requirements: NOTHING_MISSING },
      ...{ missing: NOTHING_MISSING, configChecks: [], install: [] },
    })),
  }),
};

const FILES = ["media", "mediaUrl", "mediaUrls", "buffer", "path", "filePath"];

/** The other actions, and files, need a channel of such a client's own gateway. */
const messageAction: Form<"send"> = {
  method: "send",
  params({ action, params, channel, accountId, sessionKey, idempotencyKey }) {
    const { to, message, threadId, ...rest } = fieldsOf(params);
    if (action !== "send" || FILES.some((name) => rest[name] !== undefined)) {
      return fail("invalid_argument", "message.action can only send a text here", {
        hint: 'Set action: "send", and give no files.',
      });
    }
    return ok(optional({ channel, to, message, threadId, accountId, sessionKey, idempotencyKey }));
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
  "skills.status": skills,
  // Code that runs at events of the gateway: there is none.
  "hooks.status": form({
    method: "system-presence",
    payload: () => ({ workspaceDir: "", managedHooksDir: "", hooks: [] }),
  }),
  "message.action": messageAction,
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
