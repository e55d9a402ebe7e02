// The imsg program as a process: its environment, time limits and exit.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startProgram } from "../../../src/features/imessage/program.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { PATIENCE_MS } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";

const script = (text: string): string[] => [process.execPath, "-e", text];

/**
 * Returns the source of a program that answers each request with the value of `body`, an expression of
 * `call`.
 */
const answering = (body: string): string =>
  `require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const call = JSON.parse(line); const say = (said) => process.stdout.write(JSON.stringify(said) + "\\n"); ${body} });`;

const ECHO = 'say({ jsonrpc: "2.0", id: call.id, result: call.params });';

test("IP1: the program gets a home, a language and a search path, and no other variable of the gateway's environment", async () => {
  const world = fakeWorld({ clock: "real" });
  const path = join(temporaryFolder(), "environment.json");
  process.env.PARLEY_TEST_SECRET = "a-secret-of-the-gateway";
  const write = `require("node:fs").writeFileSync(${JSON.stringify(path)}, JSON.stringify(process.env));`;
  const program = await startProgram(script(write + answering(ECHO)), world);
  await program.stop();
  delete process.env.PARLEY_TEST_SECRET;
  const names = Object.keys(JSON.parse(readFileSync(path, "utf8")) as object).sort();
  expect(names).toEqual(["HOME", "LANG", "LOGNAME", "PATH", "USER"]);
});

test("a program that does not answer its first request is stopped and reported", async () => {
  const world = fakeWorld();
  const started = startProgram(script("process.stdin.resume()"), world);
  const failed = expect(started).rejects.toThrow("gave no answer within 20 s");
  await world.timerWithin(20_000);
  await world.advance(20_000);
  await failed;
});

test("IP4: a program that ignores the end of its input and SIGTERM is killed, with its children", async () => {
  const world = fakeWorld();
  const stubborn = 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1_000);';
  const child = `const { pid } = require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(stubborn)}]);`;
  const body = 'say({ jsonrpc: "2.0", id: call.id, result: { pid } });';
  const program = await startProgram(script(stubborn + child + answering(body)), world);
  const answer = await program.request("anything", {}, PATIENCE_MS);
  const { pid } = (answer.kind === "result" ? answer.value : {}) as { pid: number };
  const stopped = program.stop();
  await world.advance(4_000);
  await stopped;
  expect(program.running()).toBe(false);
  expect(await program.ended).toContain("by SIGKILL");
  await expect.poll(() => isThere(pid)).toBe(false);
});

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie has exited already.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

test("IP2: a request after the exit counts as not received; a request during the exit has an unknown outcome", async () => {
  const world = fakeWorld({ clock: "real" });
  const body = `if (call.method === "end") process.exit(7); ${ECHO}`;
  const program = await startProgram(script(answering(body)), world);
  const asked = program.request("end", {}, PATIENCE_MS);
  expect(await asked).toMatchObject({ kind: "failed", reached: true, why: "imsg ended with exit code 7" });
  expect(await program.request("send", {}, PATIENCE_MS)).toMatchObject({ kind: "failed", reached: false });
});

test("IP3: the amount of input that the program has not read is limited", async () => {
  const world = fakeWorld({ clock: "real" });
  // Source of a program that reads only its first line.
  const once = `process.stdin.once("data", (line) => { process.stdin.pause();
    process.stdout.write(JSON.stringify({ id: JSON.parse(line).id, result: {} }) + "\\n"); setInterval(() => {}, 1_000); });`;
  const program = await startProgram(script(once), world);
  const text = "x".repeat(300_000);
  const answers = Array.from({ length: 10 }, () => program.request("send", { text }, PATIENCE_MS));
  const last = await answers.at(-1);
  expect(last).toMatchObject({ kind: "failed", reached: false, why: "imsg does not read its input" });
  await program.stop();
  for (const answer of await Promise.all(answers)) expect(answer.kind).toBe("failed");
});

test("lines may arrive in pieces, or several at once, and invalid lines are skipped", async () => {
  const world = fakeWorld({ clock: "real" });
  const body = `const text = JSON.stringify({ id: call.id, result: { text: "é\u{1F600}" } });
    if (call.method === "a") { globalThis.held = text.slice(30); process.stdout.write("a banner\\n\\n{\\n" + text.slice(0, 30)); }
    else if (call.method === "b") process.stdout.write(held + "\\n" + text + "\\n");
    else ${ECHO}`;
  const program = await startProgram(script(answering(body)), world);
  const answers = await Promise.all([
    program.request("a", {}, PATIENCE_MS),
    program.request("b", {}, PATIENCE_MS),
  ]);
  expect(answers).toEqual([1, 2].map(() => ({ kind: "result", value: { text: "é\u{1F600}" } })));
  await program.stop();
});
