// parley run: one question, its answer on standard output, and an exit code for each end.

import { expect, test } from "vitest";
import { freePort } from "../../kit/loopback.ts";
import { call, makeHome, run, runJson, startGateway } from "../kit.ts";

async function house(more: Record<string, unknown> = {}) {
  const { home } = await makeHome(more);
  await startGateway(home);
  return home;
}

test("parley run prints only the answer, from an argument and from standard input, each in a new session", async () => {
  const home = await house();
  expect(await run(home, ["run", "say one"])).toEqual({ code: 0, out: "one\n", err: "" });
  const piped = await run(home, ["run", "-", "--agent", "research"], { input: "say two\n" });
  expect(piped).toEqual({ code: 0, out: "two\n", err: "" });
  expect(await run(home, ["run", "say three"])).toMatchObject({ code: 0, out: "three\n" });
  expect((await run(home, ["sessions", "history", "say three"])).out).toBe("you: say three\nagent: three\n");
  expect((await run(home, ["sessions", "history", "say two"])).out).toContain("agent: two");
});

/** Runs the program with --json, and parses each line that it prints. */
async function runLines(home: string, ...argv: string[]) {
  const { code, out } = await run(home, ["--json", "run", ...argv]);
  expect(out).toMatch(/\n$/);
  const lines = out.trimEnd().split("\n");
  return { code, lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

test("with --json, each event of the run is one line: start, tool calls, text, end", async () => {
  const home = await house();
  const { code, lines } = await runLines(home, "list sessions");
  expect(code).toBe(0);
  const ids = { sessionKey: expect.stringMatching(/^agent:main:chat:/), runId: expect.any(String) };
  const [start, call, result] = lines;
  expect(start).toEqual({ type: "start", ...ids });
  expect(call).toEqual({ type: "tool_call", id: expect.any(String), name: "sessions_list", args: {} });
  expect(result).toMatchObject({ type: "tool_result", id: call?.id, name: "sessions_list", isError: false });
  expect(JSON.parse(String(result?.result))).toHaveProperty("sessions");
  const texts = lines.slice(3, -1);
  expect(texts).toEqual(texts.map((_, at) => ({ type: "text", text: expect.any(String), isNew: at === 0 })));
  const reply = texts.map(({ text }) => text).join("");
  expect(lines.at(-1)).toEqual({ ...start, type: "end", ok: true, reply });
  expect(reply).not.toBe("");
});

test("with --json, the last line has the outcome of every end, also without a run", async () => {
  const home = await house();
  const late = await runLines(home, "wait 60 seconds", "--timeout", "0.3");
  expect(late.code).toBe(5);
  expect(late.lines.at(0)).toMatchObject({ type: "start" });
  expect(late.lines.at(-1)).toMatchObject({ type: "end", ok: false, error: { code: "timeout" } });
  const status = await runLines(home, "/status", "--session", "main");
  expect(status).toMatchObject({ code: 0, lines: [{ type: "end", ok: true, reply: expect.any(String) }] });
  expect(await runLines(home, " ")).toMatchObject({ code: 2, lines: [{ type: "end", ok: false }] });
  const wrong = { type: "end", ok: false, error: { code: "usage" } };
  for (const argv of [["--nonsense"], [], ["x", "--timeout"]])
    expect(await runLines(home, ...argv)).toMatchObject({ code: 2, lines: [wrong] });
  const nobody = await runLines((await makeHome()).home, "hello");
  expect(nobody).toMatchObject({ code: 3, lines: [{ type: "end", ok: false }] });
});

test("parley run continues a named session, and answers a command of the gateway", async () => {
  const home = await house();
  await run(home, ["run", "say one", "--session", "main"]);
  const status = await run(home, ["run", "/status", "--session", "main"]);
  expect(status).toMatchObject({ code: 0, out: expect.stringContaining("`main`") });
  expect((await run(home, ["sessions", "history", "main"])).out).toContain("agent: one");
});

test("in a terminal, parley run shows the answer once, ended by a line break", async () => {
  const home = await house();
  const asked = await run(home, ["run", "say one two three four"], { isTTY: true });
  expect(asked).toEqual({ code: 0, out: "one two three four\n", err: "" });
});

test("parley run exits with 1 after a failure, 2 for an empty question, 3 without a gateway", async () => {
  const port = await freePort();
  const local = { api: "openai-completions", baseUrl: `http://127.0.0.1:${port}/v1`, maxRetries: 0 };
  const home = await house({
    models: { providers: { local: { ...local, models: [{ id: "m" }] } } },
    agents: { list: [{ id: "main", model: "local/m" }] },
  });
  const failed = await run(home, ["run", "hello"]);
  expect(failed).toMatchObject({ code: 1, out: "" });
  expect(failed.err).not.toBe("");
  expect(await run(home, ["run", "-"])).toMatchObject({ code: 2, err: expect.stringContaining("is empty") });
  expect((await run(home, ["run", "x", "--agent", "a", "--session", "b"])).code).toBe(2);
  const nobody = await run((await makeHome()).home, ["run", "hello"]);
  expect(nobody).toMatchObject({
    code: 3,
    out: "",
    err: expect.stringContaining("npx parley-gateway gateway"),
  });
});

test("a run that is stopped by Ctrl-C or by someone else ends with exit code 4", async () => {
  const home = await house();
  const running = () =>
    expect.poll(async () => (await runJson(home, ["sessions", "show", "main"])).state).toBe("running");
  for (const stop of [
    async (asked: { interrupt(): void }) => asked.interrupt(),
    async () => void (await run(home, ["sessions", "stop", "main"])),
  ]) {
    const asked = call(home, ["run", "wait 60 seconds", "--session", "main"]);
    await running();
    await stop(asked);
    expect(await asked.code).toBe(4);
    expect([asked.out(), asked.err()]).toEqual(["", "The run was stopped.\n"]);
  }
});

test("a run that reaches --timeout is stopped, and the exit code is 5", async () => {
  const home = await house();
  const late = await run(home, ["run", "wait 60 seconds", "--session", "main", "--timeout", "0.3"]);
  expect(late).toEqual({ code: 5, out: "", err: "The run was stopped after 0.3 s.\n" });
  await expect.poll(async () => (await runJson(home, ["sessions", "show", "main"])).state).toBe("idle");
});

test("run and send --wait say once which command an agent of theirs wants to run, and how to answer", async () => {
  const home = await house({ tools: { exec: { approval: "always" } } });
  for (const words of [["run"], ["send", "--session", "main", "--wait", "60"]]) {
    const asked = call(home, [...words, "run: echo hello"]);
    const line =
      /^Agent main asks for permission: echo hello\nAnswer with: npx parley-gateway permissions allow (\S+) .*\n$/;
    await expect.poll(asked.err).toMatch(line);
    const [, id = ""] = line.exec(asked.err()) ?? [];
    expect((await run(home, ["permissions", "allow", id])).code).toBe(0);
    expect(await asked.code).toBe(0);
    expect(asked.out()).toContain("hello");
    expect(asked.err()).toMatch(line);
  }
});

test("a command is always allowed only after a confirmation that shows it, and asks again after it is forgotten", async () => {
  const home = await house({ tools: { exec: { approval: "always" } } });
  const asks = async (): Promise<[asked: ReturnType<typeof call>, id: string]> => {
    const asked = call(home, ["run", "run: echo hello"]);
    await expect.poll(asked.err).toContain("permissions allow ");
    return [asked, /permissions allow (\S+)/.exec(asked.err())?.[1] ?? ""];
  };
  expect((await run(home, ["permissions", "rules"])).out).toBe("(no commands)\n");
  const [first, id] = await asks();
  const unsure = await run(home, ["permissions", "allow", id, "--scope", "always"]);
  expect(unsure).toMatchObject({ code: 2, out: "" });
  expect(unsure.err).toMatch(
    /^From now on agent main runs exactly this command without asking, in all its sessions, in the folder \/.*\.\n {2}echo hello\n.*--yes/,
  );
  const asking = call(home, ["permissions", "allow", id, "--scope", "always"], { isTTY: true });
  await asking.shows("Allow it from now on?");
  asking.stdin.write("\r");
  expect(await asking.code).toBe(1);
  expect((await run(home, ["permissions", "rules"])).out).toBe("(no commands)\n");
  const sure = await run(home, ["permissions", "allow", id, "--scope", "always", "--yes"]);
  expect(sure.out).toMatch(/^Allowed from now on\. Undo with: npx parley-gateway permissions forget \S+\n$/);
  expect(await first.code).toBe(0);
  expect(await run(home, ["run", "run: echo hello"])).toMatchObject({ code: 0, err: "" });
  const { out } = await run(home, ["permissions", "rules"]);
  const listed = /^(\S+) {2}agent main {2}echo hello {2}\(in \S+\)\n$/;
  expect(out).toMatch(listed);
  const forgotten = await run(home, ["permissions", "forget", listed.exec(out)?.[1] ?? ""]);
  expect(forgotten.out).toBe("Forgotten. The next call of the command asks again.\n");
  expect((await run(home, ["permissions", "rules"])).out).toBe("(no commands)\n");
  const [second, again] = await asks();
  await run(home, ["permissions", "deny", again]);
  expect(await second.code).toBe(0);
  expect((await run(home, ["permissions", "forget", "nothing"])).code).toBe(1);
});
