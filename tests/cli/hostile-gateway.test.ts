// Runs every command that prints an answer with a gateway that sends hostile answers. No answer can move the
// cursor, change a colour, hide text or forge a line.

import { expect, test } from "vitest";
import { METHODS, type MethodName } from "../../src/contract/methods.ts";
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

interface Schema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
}

const sum = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: 1 };
const refused = { allowed: false, rule: "rule", settings: ["setting"] };
/** Values of the types of `src/core` that the contract names without their fields. */
const CORE_VALUES: Readonly<Record<string, unknown>> = {
  Route: { channel: "telegram", to: "7", accountId: "account", threadId: "thread" },
  Schedule: { kind: "every" },
  UsageLine: { name: "main", runs: 1, lastAt: 1, ...sum },
  PermissionQuestion: { id: "id", sessionKey: "key", title: "title", detail: "detail", expiresAt: 1 },
  InstructionChange: {
    ...{ id: "id", path: "path", kind: "changed", source: "source", sessionKey: "key", since: 1 },
    diff: "-a\n+b",
  },
  Explanation: { access: "read", ...refused, checks: [refused, refused] },
};

/** Returns a value of a schema with all fields, in which a text contains the name of its field. */
function sampleOf(schema: Schema, name: string): unknown {
  const { title = "", anyOf, items, properties, additionalProperties: more } = schema;
  const [type] = [schema.type].flat().filter((one) => one !== "null");
  if (Object.hasOwn(CORE_VALUES, title)) return CORE_VALUES[title];
  if (schema.enum !== undefined) return schema.enum[0];
  if (anyOf !== undefined) return sampleOf(anyOf[0] ?? {}, name);
  if (properties !== undefined)
    return Object.fromEntries(Object.entries(properties).map(([key, one]) => [key, sampleOf(one, key)]));
  if (type === "array") return [sampleOf(items ?? {}, name)];
  if (type === "integer" || type === "number") return 1;
  if (type === "boolean") return true;
  return typeof more === "object" ? { [name]: sampleOf(more, name) } : `${name} text`;
}

/** Returns an answer of a method. Without pages and without a reply, which may have several lines. */
function answerTo(method: string): unknown {
  const answer = sampleOf(METHODS[method as MethodName].result as Schema, method) as object;
  const { nextCursor, reply, ...rest } = answer as Record<string, unknown>;
  return method === "sessions.list" ? { ...rest, nextCursor } : rest;
}

const text = (words: string) => [{ type: "text", text: words }];
const call = { type: "toolCall", id: "i", name: "exec", arguments: { command: "x" } };
const message = { id: "m", timestamp: 1 };

/** Messages of each kind. Their roles and kinds stay as they are. */
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
    ["cron", "runs", `id text${EVIL}`],
    ["cron", "run", `id text${EVIL}`],
    ["cron", "update", `id text${EVIL}`, "--name", "x"],
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
    ["tokens", "narrow", "id text", "--scope", "operator.read"],
    ["tokens", "revoke", "id text"],
  ],
  ...[
    ["devices"],
    ["devices", "revoke", "d"],
    ["node"],
    ["node", "list"],
    ["node", "pending"],
    ["node", "describe", "nodeId text"],
    ["node", "invoke", "nodeId text", "device.info"],
  ],
  ...[
    ["tool", "x"],
    ["call", "status"],
    ["send", "hi", "--session", "main"],
    ["send", "hi", "--channel", "c", "--to", "7"],
  ],
  ...[["doctor", "--offline"]],
  ...[["push"], ["push", "test", "ntfy"], ["push", "remove", `id text${EVIL}`]],
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
      return method === "chat.history" ? HISTORY : poisoned(answerTo(method));
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
    if (kind === "answers") expect(asked.size).toBeGreaterThan(25);
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
