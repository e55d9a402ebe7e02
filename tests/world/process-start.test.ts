// The start of a process, by which processes with the same id are told apart.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { markOf, runningProcess } from "../../src/world/process-start.ts";
import { cleanup } from "../kit/engine/engine.ts";

test.each(["linux", "darwin"] as const)(
  "on %s, a mark names a process until it ends, in any time zone and language",
  async (platform) => {
    const child = spawn("sleep", ["600"]);
    cleanup(() => {
      child.kill("SIGKILL");
    });
    await once(child, "spawn");
    const { TZ } = process.env;
    cleanup(() => {
      if (TZ === undefined) delete process.env.TZ;
      else process.env.TZ = TZ;
    });
    const pid = child.pid ?? 0;
    process.env.TZ = "Asia/Tokyo";
    const mark = markOf(pid, platform);
    expect(mark).toMatch(/^\d+ \S/);
    process.env.TZ = "America/New_York";
    expect(runningProcess(mark, platform)).toBe(pid);
    expect(runningProcess(`${pid} an-earlier-start`, platform)).toBeUndefined();
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(runningProcess(mark, platform)).toBeUndefined();
  },
);

test.each(["", "x", "0", "-1", "1.5"])("the text %j names no process", (text) => {
  expect(runningProcess(text)).toBeUndefined();
});

test("a mark of an earlier version, which has no start, names the process with this id", () => {
  expect(runningProcess(String(process.pid))).toBe(process.pid);
});
