// The drawn chat in a real pseudo-terminal, with a real gateway.

import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ACP_AGENT } from "../../kit/acp-agent.ts";
import { LAUNCHER } from "../../kit/process/fleet.ts";
import { noPty, Pty } from "../../kit/pty.ts";
import { makeHome, run, startGateway } from "../kit.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const ENTER = "\r";
const TAB = "\t";
const ALT_ENTER = "\x1b\r";
const CTRL_C = "\x03";
const CTRL_D = "\x04";
const CTRL_K = "\x0b";
const UP = "\x1b[A";
const BORDER = "─";
/** The smallest picture: one pixel. */
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

interface Opened {
  readonly pty: Pty;
  type(...keys: string[]): void;
  shows(words: string | RegExp): Promise<void>;
  /** Waits until the line of activity of this session is shown, above an input with this text. */
  ready(input?: string, key?: string): Promise<void>;
  leave(): Promise<void>;
}

interface How {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly columns?: number;
}

const literal = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

function open(home: string, { args = [], env = {}, columns = 80 }: How = {}): Opened {
  const all = { HOME: home, PARLEY_LOG: "silent", PARLEY_LAUNCHED: "1", ...env };
  const pty = new Pty([process.execPath, LAUNCHER, "chat", ...args], { folder: home, env: all, columns });
  const type = (...keys: string[]): void => pty.type(keys.join(""));
  return {
    pty,
    type,
    shows: (words) =>
      expect.poll(() => pty.text()).toMatch(typeof words === "string" ? new RegExp(literal(words)) : words),
    ready: (input = "", key = MAIN) => {
      const at = `^${literal(key)}\n${BORDER}+\n${literal(input)}\n${BORDER}+$`;
      return expect.poll(() => pty.screen()).toMatch(new RegExp(at, "m"));
    },
    async leave() {
      type(CTRL_D);
      expect(await pty.exited).toBe(0);
    },
  };
}

async function house(more: Record<string, unknown> = {}) {
  const { home } = await makeHome(more);
  return { home, gateway: await startGateway(home) };
}

/** Calls a method as the command line does. */
async function ask<T>(home: string, method: string, params: object): Promise<T> {
  const { out } = await run(home, ["--json", "call", method, JSON.stringify(params)]);
  return JSON.parse(out) as T;
}

/** Returns the texts that people wrote in a session. */
async function written(home: string, sessionKey = MAIN): Promise<string[]> {
  type Page = { messages: { role: string; content: { text?: string }[] }[] };
  const { messages } = await ask<Page>(home, "chat.history", { sessionKey });
  return messages.filter(({ role }) => role === "user").map(({ content }) => content[0]?.text ?? "");
}

/** Answers a permission request. An answer does not count while the request has just appeared. */
async function allow(chat: Opened): Promise<void> {
  const times = (words: string): number => chat.pty.text().split(words).length - 1;
  for (let hasty = 0; times("· allowed") === 0; hasty = times("not counted")) {
    chat.type("y", ENTER);
    await expect.poll(() => times("· allowed") + times("not counted")).toBeGreaterThan(hasty);
  }
}

// Skipped without a pseudo-terminal.
describe.skipIf(noPty)("a drawn chat", () => {
  test("shows an answer as formatted text; Ctrl-D leaves and restores the terminal", async () => {
    const { home } = await house();
    const chat = open(home);
    await chat.ready();
    chat.type("say **strong** words and `code`", ENTER);
    await chat.shows(/^ {2}strong words and code$/m);
    expect(chat.pty.text()).toContain("> say **strong** words");
    await chat.ready();
    await chat.leave();
    const end = chat.pty.raw().slice(-200);
    expect(end).toContain("\x1b[?2004l");
    expect(end).toContain("\x1b[?25h");
    const later = open(home);
    await later.shows(/^ {2}strong words and code$/m);
    await later.ready();
    await later.leave();
  });

  test("runs the commands and sends the messages that were typed before it was drawn", async () => {
    const { home } = await house();
    const chat = open(home);
    chat.type("/help", ENTER, "say early", ENTER, "say half");
    await chat.shows("Commands of the gateway:");
    await expect.poll(() => written(home)).toEqual(["say early"]);
    await chat.ready("say half");
    chat.type(" and half", ENTER);
    await expect.poll(() => written(home)).toEqual(["say early", "say half and half"]);
    await chat.ready();
    await chat.leave();
  });

  test("Alt+Enter, a backslash and a pasted text make one message of several lines", async () => {
    const { home } = await house();
    const chat = open(home);
    await chat.ready();
    chat.type("say one", ALT_ENTER, "two\\", ENTER);
    chat.type("\x1b[200~three\rfour\x1b[31m\x1b[201~", ENTER);
    const message = "say one\ntwo\nthree\nfour\\x1b[31m";
    await expect.poll(() => written(home)).toEqual([message]);
    await chat.shows("> say one\n  two\n  three\n  four\\x1b[31m");
    await chat.leave();
  });

  test("keeps the typed texts over starts, redacted and readable by their owner only", async () => {
    const { home } = await house();
    const first = open(home);
    await first.ready();
    first.type("say sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789", ENTER);
    await first.shows("agent:");
    await first.ready();
    await first.leave();
    const file = join(home, ".parley", "chat-history.jsonl");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, "utf8")).toBe('"say [redacted]"\n');
    const second = open(home);
    await second.ready();
    second.type(UP);
    await second.ready("say [redacted]");
    second.type(CTRL_C);
    await second.ready();
    await second.leave();
  });

  test("completes commands, sessions and files", async () => {
    const { home } = await house();
    mkdirSync(join(home, "notes"));
    writeFileSync(join(home, "notes", "plan.md"), "");
    await run(home, ["send", "--session", RESEARCH, "--wait", "20", "say hello"]);
    const chat = open(home);
    await chat.ready();
    chat.type("/hist");
    await chat.shows("show the last N messages");
    chat.type(TAB);
    await chat.ready("/history");
    chat.type(CTRL_C, "ask @resea");
    await chat.shows(/^→ agent:research:main/m);
    chat.type(TAB);
    await chat.ready(`ask ${RESEARCH}`);
    chat.type(CTRL_C, "read ./notes/pl", TAB);
    await chat.ready("read ./notes/plan.md");
    chat.type(CTRL_C);
    await chat.ready();
    await chat.leave();
  });

  test("keeps the input intact during a run; Ctrl-C clears it, stops the run, asks, and leaves", async () => {
    const { home } = await house();
    const chat = open(home);
    await chat.ready();
    chat.type("run: echo begun; sleep 60", ENTER);
    await chat.shows(/^agent:main:main · exec · \d+ s$/m);
    chat.type("half a thought");
    const own = new RegExp(`^${MAIN} · exec · \\d+ s\n${BORDER}+\nhalf a thought\n${BORDER}+$`, "m");
    await expect.poll(() => chat.pty.screen()).toMatch(own);
    const busy = /^agent:main:main · exec · [1-9]\d* s$/m;
    await chat.shows(busy);
    await expect.poll(() => chat.pty.screen()).toMatch(own);
    chat.type(CTRL_C);
    await expect.poll(() => chat.pty.screen()).not.toContain("half a thought");
    chat.type(CTRL_C);
    await chat.shows("(stopped)");
    await chat.ready();
    chat.type(CTRL_C);
    await chat.shows("press Ctrl-C again to leave");
    chat.type(CTRL_C);
    expect(await chat.pty.exited).toBe(0);
  });

  test("Ctrl+K switches to the chosen session, and the next message goes there", async () => {
    const { home } = await house();
    await run(home, ["send", "--session", RESEARCH, "--wait", "20", "say early"]);
    const chat = open(home);
    await chat.ready();
    chat.type(CTRL_K);
    await chat.shows(/^(?:→ |\s+)agent:research:main/m);
    chat.type("resear");
    await chat.shows(/^→ agent:research:main/m);
    chat.type(ENTER);
    await chat.ready("", RESEARCH);
    await chat.shows("early");
    chat.type("say there", ENTER);
    await expect.poll(() => written(home, RESEARCH)).toEqual(["say early", "say there"]);
    chat.type("/open main", ENTER);
    await chat.ready();
    expect(await written(home)).toEqual([]);
    await chat.leave();
  });

  test("shows a permission request, and y allows it, unless the request has just appeared", async () => {
    const runtime = { type: "acp", command: ACP_AGENT, permissions: "ask" };
    const list = [{ id: "main" }, { id: "coder", runtime }];
    const { home } = await house({ agents: { list } });
    const key = "agent:coder:main";
    const chat = open(home, { args: ["--session", key] });
    await chat.ready("", key);
    chat.type("ask", ENTER);
    await chat.shows("the agent asks for permission");
    await chat.shows("type y to allow");
    await allow(chat);
    await expect.poll(() => written(home, key)).toEqual(["ask"]);
    await chat.ready("", key);
    await chat.leave();
  });

  test("shows the answer to a command once, also while a run waits for permission", async () => {
    const { home } = await house();
    const chat = open(home);
    await chat.ready();
    chat.type("run: touch approved.txt", ENTER);
    await chat.shows("type y to allow");
    chat.type("/approvals", ENTER);
    await chat.shows("1 request.");
    await allow(chat);
    await chat.ready();
    expect(chat.pty.text().split("1 request.")).toHaveLength(2);
    await chat.leave();
  });

  test("no control character of an agent reaches the terminal", async () => {
    const { home } = await house();
    const hostile =
      "say a\x1b]0;owned\x07 \x1b[2J\x1b_Gf=100;AAAA\x1b\\ \u009b31m &#27;[31m [x](http://a/\x1b[5m) b";
    await ask(home, "chat.send", { sessionKey: MAIN, message: hostile, idempotencyKey: "one" });
    const chat = open(home, { columns: 120 });
    await chat.shows("agent:");
    await chat.ready();
    await chat.leave();
    const raw = chat.pty.raw();
    for (const bad of ["\x1b]0;owned", "\x1b[2J\x1b_G", "\x1b[5m", "\x1b_Gf", "\xc2\x9b"])
      expect(raw).not.toContain(bad);
    expect(chat.pty.text()).toContain("\\x1b]0;owned\\x07");
    expect(chat.pty.text()).toContain("\\x9b31m");
  });

  test("draws a picture if the terminal can, and otherwise a note", async () => {
    const { home } = await house();
    const attachments = [{ mimeType: "image/png", content: PIXEL }];
    await ask(home, "chat.send", { sessionKey: MAIN, message: "look", idempotencyKey: "one", attachments });
    const able = open(home, { env: { TERM_PROGRAM: "kitty", KITTY_WINDOW_ID: "1" } });
    await able.shows("[picture: image/png");
    await expect.poll(() => able.pty.raw()).toContain("\x1b_Ga=T");
    await able.leave();
    const other = open(home);
    await other.shows("[picture: image/png");
    await other.ready();
    await other.leave();
    expect(other.pty.raw()).not.toContain("\x1b_G");
  });

  test("follows the size of the window, with wide characters", async () => {
    const { home } = await house();
    const chat = open(home);
    await chat.ready();
    const words = "日本語のテキスト 한국어";
    chat.type(`say ${words} ${words}`, ENTER);
    await chat.shows(new RegExp(`^ {2}${words} ${words}$`, "m"));
    chat.type("漢字");
    await chat.ready("漢字");
    chat.pty.resize(4, 5);
    await expect.poll(() => chat.pty.screen()).toMatch(new RegExp(`^${BORDER}{4}$`, "m"));
    chat.pty.resize(30, 20);
    await expect
      .poll(() => chat.pty.screen())
      .toMatch(new RegExp(`^${BORDER}{30}\n漢字\n${BORDER}{30}$`, "m"));
    await expect.poll(() => chat.pty.screen()).toMatch(/^ {2}日本語のテキスト/m);
    chat.pty.resize(100, 30);
    await expect.poll(() => chat.pty.screen()).toMatch(new RegExp(`^${BORDER}{100}\n漢字\n`, "m"));
    chat.type(CTRL_C);
    await chat.leave();
  });

  test("a restart of the gateway keeps the messages and the input", async () => {
    const { home, gateway } = await house();
    const chat = open(home);
    await chat.ready();
    chat.type("say before", ENTER);
    await chat.shows(/^ {2}before$/m);
    chat.type("say after");
    await gateway.stop();
    await chat.shows("connection lost");
    await startGateway(home);
    await chat.shows("reconnected");
    await chat.ready("say after");
    chat.type(ENTER);
    await chat.shows(/^ {2}after$/m);
    expect(chat.pty.text()).toContain("  before\n");
    await chat.leave();
  });

  test.each([{ args: ["--plain"] }, { env: { TERM: "dumb" } }])("%j prints line by line", async (how) => {
    const { home } = await house();
    const chat = open(home, how);
    await chat.shows("/help lists the commands");
    chat.type("say plain", ENTER);
    await chat.shows("agent: plain");
    chat.type(CTRL_D);
    expect(await chat.pty.exited).toBe(0);
    for (const control of ["\x1b[2J", "\x1b[?", "\x1b[1A"]) expect(chat.pty.raw()).not.toContain(control);
  });
});
