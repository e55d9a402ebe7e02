// The figures of a start: how long it takes until the gateway is ready, and what memory it holds when idle.

import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { inFolder } from "./in-folder.ts";
import { type Row, residentMb } from "./measure.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const IDLE_MS = 3_000;
const READY_MAX_MS = 20_000;

/** Starts the real program, waits until it answers that it is ready, and ends it again. */
async function startOnce(idle: boolean): Promise<{ readyMs: number; idleMb: number | undefined }> {
  return inFolder(async (home) => {
    const from = performance.now();
    const env = { PATH: process.env.PATH, HOME: home, PARLEY_LOG: "silent" };
    // As `npm start` starts it.
    const args = ["--max-semi-space-size=2", join(ROOT, "bin", "parley.js"), "gateway", "--port", "0"];
    const child = spawn(process.execPath, args, { env });
    try {
      const url = await new Promise<string>((resolve, reject) => {
        let text = "";
        child.stdout.on("data", (chunk: Buffer) => {
          text += chunk.toString();
          const found = /http:\/\/[\d.]+:\d+/.exec(text);
          if (found !== null) resolve(found[0]);
        });
        child.once("exit", (code) => reject(new Error(`the gateway ended with ${code}: ${text}`)));
        setTimeout(() => reject(new Error(`not ready in ${READY_MAX_MS} ms: ${text}`)), READY_MAX_MS).unref();
      });
      const ready = await fetch(`${url}/readyz`);
      if (ready.status !== 200) throw new Error(`/readyz says ${ready.status}`);
      const readyMs = performance.now() - from;
      if (idle) await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
      return { readyMs, idleMb: child.pid === undefined ? undefined : residentMb(child.pid) };
    } finally {
      child.removeAllListeners("exit");
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await ended;
    }
  });
}

export async function startUp(): Promise<Row[]> {
  const readyMs: number[] = [];
  for (let at = 0; at < 16; at += 1) readyMs.push((await startOnce(false)).readyMs);
  const { idleMb } = await startOnce(true);
  return [
    // The first start fills the disk cache and counts for nobody who starts twice.
    {
      name: "cold start to /readyz",
      size: "empty store",
      unit: "ms",
      samples: readyMs.slice(1),
      target: "< 400",
    },
    ...(idleMb === undefined
      ? []
      : [{ name: "idle RSS", size: "empty store", unit: "MB" as const, samples: [idleMb], target: "< 110" }]),
  ];
}
