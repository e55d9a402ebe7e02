import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "../../kit/until.ts";
import { call, makeHome, run, startGateway } from "../kit.ts";

const RESEARCH = "agent:research:main";

async function house() {
  const { home } = await makeHome();
  return { home, gateway: await startGateway(home) };
}

function times(text: string, wanted: string): number {
  return text.split(wanted).length - 1;
}

test("lines from a pipe are sent in order, and all are answered before the program exits", async () => {
  const { home } = await house();
  const { code, out, err } = await run(home, ["chat"], { input: "say one\n\nsay two\n" });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/agent:main:main/);
  expect(out.indexOf("agent: one")).toBeGreaterThan(out.indexOf("> say one"));
  expect(out.indexOf("agent: two")).toBeGreaterThan(out.indexOf("agent: one"));
  expect([times(out, "agent: one"), times(out, "agent: two")]).toEqual([1, 1]);
});

test("chat --session with an unused name creates a session with that name, and later opens it again", async () => {
  const { home } = await house();
  const chat = () => run(home, ["chat", "--session", "work"], { input: "say one\n" });
  const first = await chat();
  expect(first.code).toBe(0);
  expect(first.err).toContain("New session: agent:main:work");
  expect((await chat()).err).toBe("");
  const { out } = await run(home, ["sessions", "history", "work"]);
  expect(times(out, "agent: one")).toBe(2);
  const missing = await run(home, ["sessions", "history", "wrk"]);
  expect(missing).toMatchObject({ code: 1, err: expect.stringContaining("no session") });
});

test("a line that is typed immediately before /quit is sent", async () => {
  const { home } = await house();
  const { code, out } = await run(home, ["chat"], { input: "say one\n/quit\n" });
  expect({ code, isLost: out.includes("not sent") }).toEqual({ code: 0, isLost: false });
  await expect
    .poll(async () => (await run(home, ["sessions", "history", "main"])).out)
    .toContain("agent: one");
});

test("tool calls and the messages of other sessions are shown, each once", async () => {
  const { home } = await house();
  const question = "ask research: what should we check before a release?";
  const chat = call(home, ["chat"]);
  chat.stdin.write(`${question}\n`);
  await chat.shows(`conversation with ${RESEARCH} ended`);
  chat.stdin.end();
  expect(await chat.code).toBe(0);
  const out = chat.out();
  for (const words of [
    "· sessions_send",
    '→ On "what',
    "agent: research answered:",
    `« from ${RESEARCH}: On "what`,
  ]) {
    expect([words, times(out, words)]).toEqual([words, 1]);
  }
  expect(out).toContain(`« from ${RESEARCH} (reply turn 2 of 5):`);
  expect(out).not.toContain("REPLY_SKIP");
});

test("/stop stops the agent's run", async () => {
  const { home } = await house();
  const chat = call(home, ["chat"]);
  chat.stdin.write("run: echo begun; sleep 60\n");
  await chat.shows("· exec");
  chat.stdin.write("/stop\n");
  await chat.shows("(stopped)");
  chat.stdin.end("say still here\n");
  expect(await chat.code).toBe(0);
  expect(chat.out()).toContain("agent: still here");
});

test("the first Ctrl-C stops the agent's run, and without a run Ctrl-C exits", async () => {
  const { home } = await house();
  const chat = call(home, ["chat"]);
  chat.stdin.write("run: sleep 60\n");
  await chat.shows("· exec");
  chat.interrupt();
  await chat.shows("(stopped)");
  chat.stdin.write("say done\n");
  await chat.shows("agent: done");
  await chat.shows("/help");
  while ((await Promise.race([chat.code, Promise.resolve("running")])) === "running") {
    chat.interrupt();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await chat.code).toBe(0);
});

test("/history, /help and an unknown command are answered without the agent", async () => {
  const { home } = await house();
  await run(home, ["send", "--session", "main", "--wait", "20", "say early"]);
  const { out } = await run(home, ["chat"], { input: "/history 1\n/history none\n/help\n/nonsense\n" });
  expect(out).toContain("unknown command /nonsense");
  expect(out).toContain("/stop");
  expect(out).toContain("/history needs a number");
  expect(times(out, "agent: early")).toBe(2);
});

test("/quit exits at once, and the run continues", async () => {
  const { home } = await house();
  const chat = call(home, ["chat", "--session", RESEARCH]);
  chat.stdin.write("wait 1 seconds, then say alone\n/quit\n");
  expect(await chat.code).toBe(0);
  expect(chat.out()).not.toContain("agent: alone");
  const { out } = await run(home, ["tool", "session_status", `{"sessionKey":"${RESEARCH}"}`]);
  expect(JSON.parse(out)).toMatchObject({ sessionKey: RESEARCH });
});

test("--new resets the session; --json prints the conversation as one document", async () => {
  const { home } = await house();
  const { code, out } = await run(home, ["chat", "--new", "--json"], { input: "say fresh\n" });
  expect(code).toBe(0);
  const document = JSON.parse(out) as { sessionKey: string; messages: { role: string }[] };
  expect(document.sessionKey).toMatch(/^agent:main:chat:/);
  expect(document.messages.map((message) => message.role)).toEqual(["user", "assistant"]);
});

test("after a restart of the gateway during an answer, nothing is missing and nothing is shown twice", async () => {
  const { home, gateway } = await house();
  const chat = call(home, ["chat"]);
  chat.stdin.write("say before\n");
  await chat.shows("agent: before");
  chat.stdin.write("wait 1 seconds, then say after\n");
  await chat.shows("> wait 1 seconds");
  // Wait until the run executes.
  const status = () => run(home, ["--json", "call", "health"]);
  await until(async () => (await status()).out.includes('"running": 1'));
  await gateway.stop();
  await chat.shows("connection lost");
  // This line is typed while the gateway is down. It must be sent once when the gateway runs again.
  chat.stdin.write("say meanwhile\n");
  await startGateway(home);
  await chat.shows("reconnected");
  chat.stdin.end();
  expect(await chat.code).toBe(0);
  const out = chat.out();
  for (const words of ["agent: before", "agent: after", "agent: meanwhile"]) {
    expect([words, times(out, words)]).toEqual([words, 1]);
  }
  expect(out.indexOf("agent: meanwhile")).toBeGreaterThan(out.indexOf("agent: after"));
  const history = await run(home, ["sessions", "history", "main"]);
  expect(times(history.out, "you: say meanwhile")).toBe(1);
});

test("/picture sends a picture with the words after it, and says why it can't send another file", async () => {
  const { home } = await house();
  const pixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+M8AAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
  const picture = join(home, "a b.png");
  writeFileSync(picture, Buffer.from(pixel, "base64"));
  writeFileSync(join(home, "a.txt"), "no picture");
  const lines = [
    `/picture "${picture}" say one`,
    `/picture ${home}/a.txt`,
    "/picture /nowhere.png",
    "/picture",
  ];
  const { code, out } = await run(home, ["chat"], { input: `${lines.join("\n")}\n` });
  expect(code).toBe(0);
  expect(out).toContain("agent: one");
  expect(out).toContain("a.txt is not a PNG, JPEG, GIF or WebP picture");
  expect(out).toContain("there is no file /nowhere.png");
  expect(out).toContain("/picture needs a file");
  const { out: json } = await run(home, ["sessions", "history", "main", "--json"]);
  expect(json).toContain("image/png");
});
