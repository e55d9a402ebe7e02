// The method `doctor`: its limits and its process.

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { doctorOf } from "../../../src/app/doctor.ts";
import { ok } from "../../../src/core/shapes/errors.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { until } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";
import { openHouse } from "../kit.ts";

const KEY = "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789";
/** A doctor whose program is this text, with a clock that the test holds. */
function doctorRunning(program: string, environment: Record<string, string> = {}) {
  const world = fakeWorld();
  const folder = temporaryFolder();
  const file = join(folder, "program.mjs");
  writeFileSync(file, program);
  const launcher = [process.execPath, file];
  const gatewayUrl = () => "ws://127.0.0.1:7275";
  const doctor = doctorOf({ world, launcher, folder, environment, gatewayUrl });
  return { world, folder, doctor };
}

const alive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** A program that starts a child, writes both ids to a file, and never ends. */
const STUCK = `
  import { spawn } from "node:child_process";
  import { writeFileSync } from "node:fs";
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  writeFileSync("pids.tmp", process.pid + " " + child.pid);
  (await import("node:fs")).renameSync("pids.tmp", "pids");
  setInterval(() => {}, 1000);
`;

async function stuckPids(folder: string): Promise<number[]> {
  const { readFileSync } = await import("node:fs");
  const file = join(folder, "pids");
  await until(() => existsSync(file));
  return readFileSync(file, "utf8").split(" ").map(Number);
}

test("a gateway without a doctor says so, and secrets in findings are redacted", async () => {
  const without = await (await openHouse()).client();
  await expect(without.request("doctor", {})).rejects.toMatchObject({ details: { code: "unknown_method" } });
  const finding = { name: "models", level: "problem", text: `key ${KEY}`, mend: `Replace ${KEY}.` } as const;
  const house = await openHouse({ doctor: async () => ok([finding]) });
  const report = await (await house.client()).request("doctor", {});
  expect(report.ok).toBe(false);
  expect(report.findings[0]?.text).toMatch(/^key /);
  expect(JSON.stringify(report)).not.toContain(KEY.slice(0, 20));
});

test("the doctor's process gets address, environment and --offline, and its findings are returned", async () => {
  const { doctor } = doctorRunning(
    `const findings = [{ name: "n", level: "ok", text: process.argv.slice(2).join(" ") + process.env.A },
      { name: "bad", level: "worse", text: "x" }, 7];
    console.log(JSON.stringify({ ok: true, findings }));
    process.exitCode = 1;`,
    { A: "!" },
  );
  const { signal } = new AbortController();
  const text = "--json --url ws://127.0.0.1:7275 doctor";
  expect(await doctor(false, signal)).toEqual(ok([{ name: "n", level: "ok", text: `${text}!` }]));
  expect(await doctor(true, signal)).toEqual(ok([{ name: "n", level: "ok", text: `${text} --offline!` }]));
});

test("a doctor without a result is a failure with its last words", async () => {
  const { doctor } = doctorRunning(`console.log("no JSON"); console.error("first\\nthe disk is full");`);
  const { signal } = new AbortController();
  expect(await doctor(true, signal)).toMatchObject({
    ok: false,
    code: "exec_failed",
    error: "the doctor gave no result: the disk is full",
  });
});

test("DR1: a second doctor is refused, and at the time limit the first is killed with its child processes", async () => {
  const { world, folder, doctor } = doctorRunning(STUCK);
  const { signal } = new AbortController();
  const first = doctor(true, signal);
  const pids = await stuckPids(folder);
  expect(await doctor(true, signal)).toMatchObject({ ok: false, code: "rate_limited" });
  expect(pids.map(alive)).toEqual([true, true]);
  await world.advance(180_000);
  expect(await first).toMatchObject({ ok: false, code: "exec_timeout" });
  await until(() => !pids.some(alive));
});

test("DR1: the doctor is killed when its caller disconnects, and another one can start", async () => {
  const { folder, doctor } = doctorRunning(STUCK);
  const asked: Promise<unknown>[] = [];
  const house = await openHouse({
    doctor: (offline, signal) => {
      const found = doctor(offline, signal);
      asked.push(found);
      return found;
    },
  });
  const client = await house.client();
  const answer = client.request("doctor", {}).catch((error: Error) => error);
  const pids = await stuckPids(folder);
  client.close();
  expect(await answer).toBeInstanceOf(Error);
  expect(await asked[0]).toMatchObject({ ok: false, code: "cancelled" });
  await until(() => !pids.some(alive));
  const again = new AbortController();
  const next = doctor(true, again.signal);
  again.abort();
  expect(await next).toMatchObject({ code: "cancelled" });
});
