// Runs every command that prints an answer with a gateway that sends hostile answers. No answer can move the
// cursor, change a colour, hide text or forge a line.

import { expect, test } from "vitest";
import { homeWith } from "../kit/process/gateway-process.ts";
import { scriptedGateway } from "../kit/scripted-gateway.ts";
import { run } from "./kit.ts";

/**
 * Characters that control a terminal, reorder text or hide text, followed by a forged line of the program.
 */
const EVIL =
  "\u001b]0;title\u0007\u001b[2J\u009b8m\u202e\u2066\u200b\u{e0041}\u001b]8;;x:\u001b\\\r\u2028\b\nFORGED \u0000\u007f";
const FORBIDDEN = /[^\P{Cc}\n]|(?![\u200c\u200d])[\p{Cf}\p{Zl}\p{Zp}]/u;

/** Appends a hostile text to every text in a value, and to field names. */
function poisoned(value: unknown): unknown {
  if (typeof value === "string") return value + EVIL;
  if (Array.isArray(value)) return value.map(poisoned);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, poisoned(inner)]));
}

const route = { channel: "telegram", to: "7", accountId: "a", threadId: "t" };
const row = {
  key: "agent:main:main",
  sessionKind: "main",
  label: "l",
  sessionId: "s",
  updatedAt: 1,
  createdAt: 1,
  totalTokens: 1,
};
const session = {
  ...row,
  model: "m",
  modelProvider: "p",
  state: "idle",
  queuedRuns: 0,
  agentId: "main",
  kind: "main",
};
const turn = {
  cause: "due",
  firedAtMs: 1,
  status: "error",
  code: "c",
  error: "e",
  runId: "r",
  delivery: "failed",
};
const job = {
  id: "j",
  key: "k",
  name: "n",
  enabled: true,
  schedule: { kind: "every" },
  words: "w",
  agentId: "main",
  state: { nextRunAtMs: 1, last: turn },
};
const node = {
  nodeId: "abcdef123456",
  displayName: "d",
  platform: "p",
  version: "1",
  commands: ["c"],
  connected: true,
  agentId: "main",
  sessionKey: "k",
  lastSeenAtMs: 1,
  caps: [],
  code: "A",
  remoteIp: "1",
  createdAtMs: 1,
  allowedCommands: ["c"],
};
const peer = {
  channel: "telegram",
  accountId: "a",
  peerId: "7",
  agentId: "main",
  name: "Ada",
  state: "pending",
  code: "C",
  askedAt: 1,
};
const sum = {
  name: "main",
  runs: 1,
  input: 1,
  output: 1,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 2,
  cost: 1,
  lastAt: 1,
};
const text = (words: string) => [{ type: "text", text: words }];
const call = { type: "toolCall", id: "i", name: "exec", arguments: { command: "x" } };
const message = { id: "m", timestamp: 1 };

/** Answers by method. Their texts become hostile, except those that name a kind of object. */
const ANSWERS: Record<string, unknown> = {
  "sessions.list": { sessions: [session], nextCursor: "n" },
  "sessions.resolve": { key: "agent:main:main" },
  "sessions.reset": { key: "agent:main:main", sessionId: "s" },
  "agents.list": { agents: [{ id: "main", name: "n", default: true, model: "m" }] },
  usage: {
    lines: [sum],
    truncated: true,
    budgets: [{ agentId: "main", dailyTokens: 1, tokensToday: 1, costToday: 1 }],
  },
  "deliveries.list": {
    deliveries: [
      {
        id: "d",
        sessionKey: "k",
        kind: "reply",
        route,
        text: "t",
        state: "failed",
        code: "c",
        error: "e",
        attempts: 1,
        createdAt: 1,
      },
    ],
  },
  "cron.list": { jobs: [job], note: "n" },
  "cron.runs": { entries: [turn] },
  "cron.run": { runId: "r", sessionKey: "k" },
  "cron.update": { job, note: "n" },
  "channels.status": {
    channels: [{ id: "telegram:a", kind: "telegram", state: "failed", lastError: "e", failed: 1 }],
  },
  "channels.pair.list": { peers: [peer] },
  "channels.pair.approve": { peer },
  "bindings.list": {
    bindings: [{ route, sessionKey: "k", kind: "subagent", usedAt: 1, idleMs: 1, maxAgeMs: 1 }],
  },
  "device.token.list": {
    ts: 1,
    devices: [{ deviceId: "d", displayName: "n", platform: "p", role: "r", lastUsedAtMs: 1, expiresAtMs: 1 }],
  },
  "tokens.list": {
    ts: 1,
    mayCreate: true,
    tokens: [{ id: "token", name: "n", scopes: [], sessions: ["s"], expiresAtMs: 1, current: true }],
    configured: [{ setting: "s", role: "operator", scopes: [], sessions: ["s"], current: true }],
  },
  "tokens.create": { token: "t", entry: { id: "t", name: "n", scopes: [], sessions: ["s"] } },
  "tokens.narrow": { entry: { id: "t", name: "n", scopes: [], sessions: ["s"] } },
  "tokens.revoke": { id: "t" },
  "node.list": { ts: 1, nodes: [node] },
  "node.describe": { ts: 1, ...node },
  "node.pair.list": { ts: 1, pending: [node] },
  "node.invoke": { payload: { a: "b" } },
  "permissions.list": {
    permissions: [{ id: "p", sessionKey: "k", title: "t", detail: "d", expiresAt: 1 }],
    instructions: [
      { id: "i", path: "p", kind: "changed", source: "s", sessionKey: "k", since: 1, diff: "-a\n+b" },
    ],
  },
  "access.explain": {
    viewer: { key: "a" },
    target: { key: "b", exists: false },
    answers: [
      {
        access: "read",
        allowed: false,
        rule: "r",
        settings: ["s"],
        checks: [
          { allowed: false, rule: "x" },
          { allowed: false, rule: "y" },
        ],
      },
    ],
  },
  "tools.invoke": { status: "ok", text: "t" },
  status: { a: ["b"] },
  "chat.send": { runId: "r", status: "started" },
  send: { messageId: "m" },
};

/** The values of these fields are kinds of objects, and stay unchanged. */
const HISTORY = {
  sessionKey: "k",
  sessionId: "s",
  messages: [
    { ...message, role: "user", content: text(EVIL), senderName: EVIL },
    {
      ...message,
      role: "user",
      content: text(EVIL),
      provenance: { kind: "inter_session", sourceSessionKey: EVIL },
    },
    { ...message, role: "user", content: text(EVIL), provenance: { kind: "hook", source: EVIL } },
    {
      ...message,
      role: "assistant",
      content: [...text(EVIL), { ...call, name: EVIL, arguments: { [EVIL]: EVIL } }],
      errorMessage: EVIL,
    },
    { ...message, role: "toolResult", toolName: EVIL, content: text(EVIL), isError: true },
  ],
  nextBefore: EVIL,
};

const COMMANDS: readonly (readonly string[])[] = [
  ...[
    ["sessions"],
    ["sessions", "show", "x"],
    ["sessions", "tree"],
    ["sessions", "history", "x"],
    ["sessions", "reset", "x"],
  ],
  ...[["agents"], ["usage"], ["deliveries"], ["deliveries", "list"], ["may", "a", "b"], ["permissions"]],
  ...[
    ["cron"],
    ["cron", "list"],
    ["cron", "runs", `j${EVIL}`],
    ["cron", "run", `j${EVIL}`],
    ["cron", "update", `j${EVIL}`, "--name", "x"],
  ],
  ...[
    ["channels"],
    ["channels", "status"],
    ["channels", "pair"],
    ["channels", "pair", "approve", "C"],
    ["channels", "bindings"],
  ],
  ...[
    ["tokens"],
    ["tokens", "create", "n"],
    ["tokens", "narrow", "token", "--scope", "operator.read"],
    ["tokens", "revoke", "token"],
  ],
  ...[
    ["devices"],
    ["devices", "revoke", "d"],
    ["node"],
    ["node", "list"],
    ["node", "pending"],
    ["node", "describe", "abcdef12"],
    ["node", "invoke", "abcdef12", "device.info"],
  ],
  ...[
    ["tool", "x"],
    ["call", "status"],
    ["send", "hi", "--session", "main"],
    ["send", "hi", "--channel", "c", "--to", "7"],
  ],
  ...[["doctor", "--offline"]],
];

async function hostile(answerOf: (method: string) => unknown): Promise<{ url: string; asked: Set<string> }> {
  const gateway = await scriptedGateway();
  const asked = new Set<string>();
  const serve = async (): Promise<never> => {
    for (;;) {
      const request = await gateway.request();
      asked.add(request.method);
      const answer = answerOf(request.method);
      if (answer === undefined)
        request.refuse({ code: `X${EVIL}`, message: `no${EVIL}`, details: { hint: EVIL, code: EVIL } });
      else request.answer(answer);
    }
  };
  void serve();
  return { url: gateway.url, asked };
}

test.each([["answers"], ["refusals"]])(
  "ST1: no command prints a hostile gateway's %s on a terminal",
  async (kind) => {
    const { url, asked } = await hostile((method) => {
      if (kind === "refusals") return undefined;
      return method === "chat.history" ? HISTORY : poisoned(ANSWERS[method]);
    });
    const home = homeWith({});
    for (const command of COMMANDS) {
      for (const json of [[], ["--json"]]) {
        const { out, err } = await run(home, ["--url", url, "--token", "t", ...json, ...command]);
        expect(out + err, command.join(" ")).not.toBe("");
        // Checks only stdout, because every line on stderr belongs to an error.
        expect(out, command.join(" ")).not.toMatch(/^FORGED/m);
        for (const line of (out + err).split("\n")) expect(line, command.join(" ")).not.toMatch(FORBIDDEN);
      }
    }
    if (kind === "answers") expect(Object.keys(ANSWERS).filter((method) => !asked.has(method))).toEqual([]);
  },
);

test("CL2: if the connection is lost during a command, the exit code is 3", async () => {
  const home = homeWith({});
  const gateway = await scriptedGateway();
  const serve = async (): Promise<never> => {
    for (;;) {
      const request = await gateway.request();
      if (request.method === "channels.status")
        request.answer({ channels: [{ id: "a:b", kind: "channel" }] });
      else gateway.hangUp();
    }
  };
  void serve();
  const asking = COMMANDS.filter(
    ([name, verb]) => name !== "doctor" && !(name === "channels" && (verb ?? "status") === "status"),
  );
  for (const command of [...asking, ["channels", "test"]]) {
    const { code, out } = await run(home, ["--url", gateway.url, "--token", "t", "--json", ...command]);
    expect({ command, code }).toEqual({ command, code: 3 });
    expect(JSON.parse(out)).toMatchObject({ ok: false, error: { code: "CLOSED" } });
  }
});
