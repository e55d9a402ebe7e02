// An agent that is a separate program and speaks the Agent Client Protocol (ACP): a real program and a real
// gateway.

import { expect, test } from "vitest";
import { connect } from "../../../src/contract/client/node.ts";
import { THINKING_DELTAS } from "../../../src/contract/protocol.ts";
import { textOf, toolCallsOf } from "../../../src/core/shapes/message.ts";
import { acpProgramOf } from "../../../src/features/acp/programs.ts";
import { ACP_AGENT } from "../../kit/acp-agent.ts";
import { cleanup, quietWorld } from "../../kit/engine/engine.ts";
import { isAlive, openStage, pidsOf, type Stage, TOKEN, until } from "./kit.ts";

/** Returns the transcript of a session, one line for each message. */
async function lines(stage: Stage, sessionKey?: string): Promise<string[]> {
  return (await stage.messages(sessionKey)).map((message) => {
    const calls = toolCallsOf(message).map((call) => `${call.name}(${call.id})`);
    const of =
      message.role === "toolResult" ? ` ${message.toolCallId}${message.isError ? " failed" : ""}` : "";
    return [`${message.role}${of}:`, textOf(message), ...calls].filter(Boolean).join(" ");
  });
}

test("the answer to a prompt is streamed, stored in the transcript, and returned as the run's answer", async () => {
  const stage = await openStage();
  expect(await stage.say("say hello there")).toBe("hello there");
  expect(stage.chats.some((event) => event.state === "delta")).toBe(true);
  expect(await lines(stage)).toEqual(["user: say hello there", "assistant: hello there"]);
  const last = (await stage.messages()).at(-1);
  expect(last).toMatchObject({ api: "acp", provider: "acp", model: "main", stopReason: "stop" });
});

test("AT1: a tool call and its result are stored between the texts before and after them, and published immediately", async () => {
  const stage = await openStage();
  expect(await stage.say("tool")).toBe("It says forty-two.");
  expect(await lines(stage)).toEqual([
    "user: tool",
    "assistant: Let me look.  read(notes.txt)",
    "toolResult notes.txt: forty-two",
    "assistant: It says forty-two.",
  ]);
  const [call] = toolCallsOf((await stage.messages())[1] as never);
  expect(call?.arguments).toEqual({ path: "notes.txt" });
  const told = stage.agents.flatMap((event) => (event.stream === "tool" ? [event.data] : []));
  expect(told).toMatchObject([
    { phase: "start", name: "read", args: { path: "notes.txt" } },
    { phase: "result", name: "read", isError: false, result: "forty-two" },
  ]);
  expect((await stage.messages()).at(-1)).toMatchObject({ usage: { input: 10, output: 5, totalTokens: 15 } });
});

test("AT1: if tool calls are reported out of order, each one gets exactly one result, stored after its message", async () => {
  const stage = await openStage();
  expect(await stage.say("late")).toBe("at last");
  expect(await lines(stage)).toEqual([
    "user: late",
    "assistant: read(a)",
    "toolResult a: of a",
    "assistant: meanwhile read(b)",
    "toolResult b failed: of b",
    "assistant: at last",
  ]);
});

test("AT1: if a tool call has no result when the turn ends, it gets one", async () => {
  const stage = await openStage();
  expect(await stage.say("open")).toBe("ok");
  const [, , result] = await lines(stage);
  expect(result).toMatch(/^toolResult never failed: .*without reporting/);
});

test("thoughts are streamed and stored as thinking, and are not part of the reply", async () => {
  const stage = await openStage();
  const thoughts: (string | undefined)[] = [];
  const page = await connect({ url: stage.url, token: TOKEN, caps: [THINKING_DELTAS], reconnect: false });
  cleanup(() => page.close());
  page.on("agent", ({ stream, data }) => {
    if (stream === "thinking_delta") thoughts.push(data.text);
  });
  expect(await stage.say("think deeply, and long")).toBe("ok");
  expect(thoughts.at(-1)).toContain("deeply,");
  const last = (await stage.messages()).at(-1);
  expect(last?.content).toMatchObject([
    { type: "thinking", thinking: "deeply, and long" },
    { type: "text", text: "ok" },
  ]);
});

test("AT5: thinking that is written as text is stored as thinking, and appears in neither live text nor reply", async () => {
  const stage = await openStage();
  expect(await stage.say("say <think>a secret</think>Hello")).toBe("Hello");
  expect(JSON.stringify(stage.chats)).not.toContain("secret");
  expect((await stage.messages()).at(-1)?.content).toMatchObject([
    { type: "thinking", thinking: "a secret" },
    { type: "text", text: "Hello" },
  ]);
});

test("an answer in thousands of pieces arrives complete", async () => {
  const stage = await openStage();
  expect(await stage.say("flood")).toBe("0123456789".repeat(4_000));
});

test("a message with too many values is left out, and the turn continues", async () => {
  const stage = await openStage();
  expect(await stage.say("values")).toBe("unread");
  expect(await stage.say("say next")).toBe("next");
});

test("if Codex writes an error as its answer, the run fails, unless Codex continues afterwards", async () => {
  const stage = await openStage();
  const ended = await stage.end(await stage.begin("broken no credit"));
  expect(ended).toMatchObject({ runStatus: "error", error: 'agent "main": it reports an error: no credit' });
  const last = (await stage.messages()).at(-1);
  expect(last).toMatchObject({ role: "assistant", stopReason: "error" });
  expect(await stage.say("broken retried")).toBe("retried");
});

test("a warning of the program is not part of its answer", async () => {
  const stage = await openStage();
  expect(await stage.say("warn")).toBe("");
  expect(await lines(stage)).toEqual(["user: warn", "assistant: REPLY_SKIP"]);
});

test("the agent keeps its context: the first prompt contains the introduction, and later prompts only new messages", async () => {
  const stage = await openStage({ main: { instructions: "Be a good program." } });
  const first = JSON.parse(await stage.say("prompt")) as string[];
  expect(first).toEqual([
    expect.stringMatching(/agent "main".*session main.*\n.*\n.*\nBe a good program/s),
    "prompt",
  ]);
  await stage.client.call("chat.inject", { sessionKey: "main", message: "The door is open." });
  const second = JSON.parse(await stage.say("prompt")) as string[];
  expect(second).toHaveLength(2);
  expect(second[0]).toMatch(
    /^Since your last turn .*\n\[a note, written in your name\]\n\| The door is open\.\n$/s,
  );
  expect(JSON.parse(await stage.say("prompt"))).toEqual(["prompt"]);
  expect(pidsOf(stage.home)).toHaveLength(1);
});

test("each session has a separate program with its own context", async () => {
  const stage = await openStage();
  const { key } = await stage.client.request("sessions.create", {
    agentId: "main",
    idempotencyKey: "two",
  });
  await Promise.all([stage.say("say a"), stage.say("say b", key)]);
  expect(pidsOf(stage.home)).toHaveLength(2);
  expect(await lines(stage, key)).toEqual(["user: say b", "assistant: b"]);
});

test("the reported cost is counted once for each run", async () => {
  const stage = await openStage();
  await stage.say("spend 0.5");
  await stage.say("spend 0.25");
  const costs = (await stage.messages()).flatMap((message) =>
    message.role === "assistant" ? [message.usage.cost.total] : [],
  );
  expect(costs).toEqual([0.5, 0.25]);
});

test("AC2: an abort ends the run at once and cancels the prompt; the program accepts the next prompt", async () => {
  const stage = await openStage();
  const runId = await stage.begin("hang");
  await until(
    () => stage.messages(),
    (messages) => messages.length === 2,
  );
  await stage.logged("waiting");
  await stage.client.call("chat.abort", { sessionKey: "main" });
  expect(await stage.end(runId)).toMatchObject({ runStatus: "aborted" });
  expect(await lines(stage)).toEqual([
    "user: hang",
    "assistant: execute(wait)",
    expect.stringMatching(/^toolResult wait failed: The run ended \(aborted\)/),
    "assistant: I am waiting",
  ]);
  expect(await stage.say("say next")).toBe("next");
  expect(stage.log()).toContain("cancel");
  expect(pidsOf(stage.home)).toHaveLength(1);
});

test("AC2: if a program ignores the cancellation of a prompt, it is killed, and the next turn starts a new one", async () => {
  const stage = await openStage();
  const runId = await stage.begin("stuck");
  await stage.logged("waiting");
  await stage.client.call("chat.abort", { sessionKey: "main" });
  expect(await stage.end(runId)).toMatchObject({ runStatus: "aborted" });
  expect(await stage.say("say again")).toBe("again");
  const [first = 0, second = 0] = pidsOf(stage.home);
  expect([isAlive(first), isAlive(second)]).toEqual([false, true]);
});

test("a run that exceeds its time limit ends with the state timeout, and its prompt is cancelled", async () => {
  const stage = await openStage();
  const idempotencyKey = crypto.randomUUID();
  await stage.client.call("chat.send", {
    sessionKey: "main",
    message: "hang",
    timeoutMs: 600,
    idempotencyKey,
  });
  expect(await stage.end(idempotencyKey)).toMatchObject({ runStatus: "timeout", code: "run_timeout" });
  expect(await stage.say("say on")).toBe("on");
});

test("AC3: if a program exits during a prompt, the run ends with an error, and the next prompt contains the interrupted work", async () => {
  const stage = await openStage();
  expect(await stage.say("die")).toMatch(
    /^error: agent "main": in the middle .*exit code 3.*the engine fell out/,
  );
  expect(await lines(stage)).toEqual([
    "user: die",
    "assistant: read(half)",
    expect.stringMatching(/^toolResult half failed/),
    "assistant: half a word",
  ]);
  const told = JSON.parse(await stage.say("prompt")) as string[];
  expect(told[1]).toMatch(
    /^You have no memory of this session.*\[a person\]\n\| die\n\[you\]\n\| half a word/s,
  );
  expect(stage.log().filter((line) => line === "prompt die")).toHaveLength(1);
});

test("if the program cannot start, the error names the setting to check", async () => {
  const missing = await openStage({ runtime: { command: ["no-such-program-here"] } });
  expect(await missing.say("say x")).toMatch(/exit code 127; .*runtime\.command/);
  const strange = await openStage({ runtime: { command: [process.execPath, "-e", "console.log('hi')"] } });
  expect(await strange.say("say x")).toMatch(/^error: agent "main": initialize: /);
  const nowhere = await openStage({ runtime: { cwd: "/no/such/folder" } });
  expect(await nowhere.say("say x")).toMatch(/\/no\/such\/folder .*runtime\.cwd/);
  const stranger = await openStage({ env: { ACP_REFUSE: "1" } });
  expect(await stranger.say("say x")).toMatch(/it requires a sign-in/);
});

test("AC2: an abort during the start of the program ends the run at once, and no process remains", async () => {
  const command = ["sh", "-c", 'echo start $$ >> "$ACP_LOG"; exec sleep 1000'];
  const stage = await openStage({ runtime: { command } });
  const runId = await stage.begin("say x");
  const [pid = 0] = await until(
    () => pidsOf(stage.home),
    (pids) => pids.length > 0,
  );
  await stage.client.call("chat.abort", { sessionKey: "main" });
  expect(await stage.end(runId)).toMatchObject({ runStatus: "aborted" });
  await until(
    () => isAlive(pid),
    (alive) => !alive,
  );
});

test("AP2: an agent's process gets only harmless variables of the gateway's environment, and those of its configuration", async () => {
  const stage = await openStage({
    environment: { PARLEY_TOKEN: "secret", OPENAI_API_KEY: "secret", LANG: "C" },
  });
  const names = JSON.parse(await stage.say("env")) as string[];
  expect(names.filter((name) => !["_", "PWD", "SHLVL", "OLDPWD"].includes(name))).toEqual(
    ["ACP_LOG", "ACP_STATE", "HOME", "LANG", "PATH", "TERM"].filter(Boolean),
  );
});

test("AP1, AC4: a planned stop ends every program, and a program that is idle for some time is stopped", async () => {
  const stage = await openStage({ runtime: { idleMinutes: 0 } });
  await stage.say("say a");
  const [first = 0] = pidsOf(stage.home);
  await until(
    () => isAlive(first),
    (alive) => !alive,
  );
  await stage.begin("stuck");
  await stage.logged("waiting");
  await stage.stop();
  expect(pidsOf(stage.home).map(isAlive)).toEqual([false, false]);
});

test("with permissions `deny` or `allow`, requests are answered without an operator", async () => {
  const deny = await openStage();
  expect(await deny.say("ask")).toBe("I was told: no");
  const allow = await openStage({ runtime: { permissions: "allow" } });
  expect(await allow.say("ask")).toBe("I was told: yes");
  expect((await lines(allow))[1]).toBe("assistant: execute(rm)");
});

interface Question {
  readonly id: string;
  readonly title: string;
  readonly detail: string;
}

async function question(stage: Stage): Promise<Question> {
  const ask = () => stage.client.request("permissions.list", {});
  const { permissions } = await until(ask, (answer) => answer.permissions.length > 0);
  return permissions[0] as Question;
}

test("PD1: with permissions `ask` an operator decides each request once; an abort withdraws the request", async () => {
  const stage = await openStage({ runtime: { permissions: "ask" } });
  const runId = await stage.begin("ask");
  const asked = await question(stage);
  expect(asked).toMatchObject({ title: "Remove everything", detail: "command: rm -r build" });
  const answer = { id: asked.id, decision: "allow" };
  expect(await stage.client.call("permissions.answer", answer)).toMatchObject({ ok: true });
  await expect(stage.client.call("permissions.answer", answer)).rejects.toThrow(
    /there is no open permission request/,
  );
  expect(await stage.end(runId)).toMatchObject({ status: "ok" });
  expect(stage.log()).toContain("permission yes");
  await stage.begin("ask");
  await question(stage);
  await stage.client.call("chat.abort", { sessionKey: "main" });
  await stage.logged("permission cancelled");
  expect(await stage.client.call("permissions.list", {})).toEqual({ permissions: [], instructions: [] });
});

test("PD1: a permission request that nobody answers in time is denied", async () => {
  const stage = await openStage({ runtime: { permissions: "ask", askSeconds: 1 } });
  expect(await stage.say("ask")).toBe("I was told: no");
});

test.each([
  ["@agentclientprotocol/claude-agent-acp", "default"],
  ["@agentclientprotocol/codex-acp", "read-only"],
  ["gemini-cli", "default"],
  ["qwen-code", "default"],
  ["Copilot", "https://agentclientprotocol.com/protocol/session-modes#agent"],
])("%s works in its mode %s, in which it asks, also in a session that it opens again", async (name, mode) => {
  const env = { ACP_NAME: name, ACP_LOAD: "1" };
  const first = await openStage({ env });
  expect(await first.say("say hi")).toBe("hi");
  await first.stop();
  const second = await openStage({ env, home: first.home });
  expect(await second.say("say hi")).toBe("hi");
  const lines = second.log().filter((line) => /^(?:new|load|mode|prompt) /.test(line));
  const [, , id] = lines[1]?.split(" ") ?? [];
  const chosen = `mode ${mode} ${id}`;
  expect(lines).toEqual([`new ${id}`, chosen, "prompt say hi", `load ${id}`, chosen, "prompt say hi"]);
});

test("a program that cannot be put into its asking mode gets no prompt, unless everything is allowed", async () => {
  const env = { ACP_NAME: "qwen-code", ACP_MODES: "0" };
  const asking = await openStage({ env, runtime: { permissions: "ask" } });
  expect(await asking.say("say hi")).toMatch(/session\/set_mode.*mode "default".*acts without asking/);
  expect(asking.log()).not.toContain("prompt say hi");
  const allowing = await openStage({ env, runtime: { permissions: "allow" } });
  expect(await allowing.say("say hi")).toBe("hi");
});

test("Claude Code works in its mode default also if everything is allowed, because its mode auto refuses session tools", async () => {
  const runtime = { permissions: "allow" };
  const env = { ACP_NAME: "@agentclientprotocol/claude-agent-acp" };
  const chooses = await openStage({ env, runtime });
  expect(await chooses.say("ask")).toBe("I was told: yes");
  expect(chooses.log().filter((line) => line.startsWith("mode "))).toEqual([
    expect.stringMatching(/^mode default /),
  ]);
  const without = await openStage({ env: { ...env, ACP_MODES: "0" }, runtime });
  expect(await without.say("say hi")).toBe("hi");
});

test("opencode gets rules with which it asks for all but reading and session tools, unless everything is allowed", async () => {
  const command = [...ACP_AGENT, "opencode"];
  const asks = await openStage({ runtime: { command } });
  const names = ["OPENCODE_PERMISSION", "OPENCODE_DISABLE_PROJECT_CONFIG"];
  expect(JSON.parse(await asks.say("env"))).toEqual(expect.arrayContaining(names));
  const allows = await openStage({ runtime: { command, permissions: "allow" } });
  expect(await allows.say("env")).not.toContain("OPENCODE");
  const rules = JSON.parse(acpProgramOf({ command })?.variables?.OPENCODE_PERMISSION ?? "");
  expect(rules).toMatchObject({ "*": "ask", read: { "*": "allow" }, parley_sessions_send: "allow" });
  expect(Object.keys(rules)).not.toContain("bash");
});

test("an option that the program remembers never allows a request", async () => {
  const stage = await openStage({ runtime: { permissions: "allow" } });
  const options = [
    { optionId: "always", name: "touch *", kind: "allow_always" },
    { optionId: "never", name: "Never", kind: "reject_always" },
  ];
  const request = { toolCall: { toolCallId: "t", title: "touch x" }, options };
  expect(await stage.say(`permit ${JSON.stringify(request)}`)).toBe("I was told: cancelled");
});

const LEFT_OUT = "[too large: this update was left out]";

test.each([
  ["9 MB of text", "large 9 diff", 'a.txt:\na "large" \\ ☃ \u0007 file '],
  ["20 MB of text", "large 20 diff", 'a.txt:\na "large" '],
  ["18 MB of numbers", "large 18 numbers", LEFT_OUT],
  ["9 MB in short texts", "large 9 texts", LEFT_OUT],
  ["8 MB in short texts", "large 8 texts", "xxx"],
  ["6 MB of text", "large 6 diff", 'a.txt:\na "large" '],
])(
  "a tool call whose result has %s does not end the turn, and its result says that it was too large",
  async (_, say, begin) => {
    const stage = await openStage();
    expect(await stage.say(say)).toBe("ok");
    const result = (await stage.messages()).find(({ role }) => role === "toolResult");
    const text = result === undefined ? "" : textOf(result);
    expect(text.slice(0, begin.length)).toBe(begin);
    expect(text).toContain("[too large:");
    expect(text.length).toBeLessThan(70_000);
    expect(await stage.say("say on")).toBe("on");
    expect(pidsOf(stage.home)).toHaveLength(1);
  },
);

test("text that a program writes up to a second after the end of its prompt belongs to the answer", async () => {
  const stage = await openStage({ world: quietWorld() });
  expect(await stage.say("delayed , then this.")).toBe("First, then this.");
  expect((await lines(stage)).at(-1)).toBe("assistant: First, then this.");
  expect(await stage.say("delayed , and that.")).toBe("First, and that.");
});
