// Benchmarks the start of the real program with its own home: the time until it is ready, and its idle
// memory. The first start of each kind is not counted, because it fills the caches of disk and compiler.

import { execFileSync, spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { memoryOf } from "../tests/kit/load/memory.ts";
import { serveHttp } from "../tests/kit/loopback.ts";
import { addressOf, LAUNCHER, writeHome } from "../tests/kit/process/fleet.ts";
import { inFolder } from "./in-folder.ts";
import type { Row } from "./measure.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const STARTS = 15;
const STARTS_WITH_CHANNELS = 5;
const IDLE_STARTS = 3;
const IDLE_MS = 3_000;

/** Content of the configuration file, and the idle time after which memory is read. */
interface Start {
  readonly config: Record<string, unknown> | undefined;
  readonly idleMs: number;
}

/** Starts the real program, waits until it reports ready, and stops it. */
async function startOnce({ config, idleMs }: Start): Promise<{ readyMs: number; idleMb: number[] }> {
  return inFolder(async (home) => {
    if (config !== undefined) writeHome(home, config);
    const from = performance.now();
    const env = { PATH: process.env.PATH, HOME: home, PARLEY_LOG: "silent" };
    // The arguments of `npm start`.
    const args = [LAUNCHER, "gateway", "--port", "0"];
    const child = spawn(process.execPath, args, { env });
    try {
      const ready = await fetch(`${await addressOf(child)}/readyz`);
      if (ready.status !== 200) throw new Error(`/readyz says ${ready.status}`);
      const readyMs = performance.now() - from;
      if (idleMs === 0) return { readyMs, idleMb: [] };
      await new Promise((resolve) => setTimeout(resolve, idleMs));
      const mb = child.pid === undefined ? undefined : memoryOf(child.pid)?.rss;
      return { readyMs, idleMb: mb === undefined ? [] : [mb] };
    } finally {
      child.removeAllListeners("exit");
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await ended;
    }
  });
}

async function startsOf(config: Record<string, unknown> | undefined, times: number): Promise<number[]> {
  const readyMs: number[] = [];
  for (let at = 0; at <= times; at += 1) readyMs.push((await startOnce({ config, idleMs: 0 })).readyMs);
  return readyMs.slice(1);
}

async function idleOf(config: Record<string, unknown> | undefined): Promise<number[]> {
  const megabytes: number[] = [];
  for (let at = 0; at < IDLE_STARTS; at += 1) {
    megabytes.push(...(await startOnce({ config, idleMs: IDLE_MS })).idleMb);
  }
  return megabytes;
}

/**
 * Calls `work` with the address of a server that accepts every request and answers none. It replaces the chat
 * platforms, so that the network is not measured.
 */
async function withSilentPlatform<T>(work: (url: string) => Promise<T>): Promise<T> {
  const { origin, close } = await serveHttp(() => {});
  try {
    return await work(origin);
  } finally {
    await close();
  }
}

/** Measures cold start and idle memory, without channels and with two of them. */
export async function startUp(): Promise<Row[]> {
  // Build dist from the current files, because an installed package starts from dist.
  execFileSync(process.execPath, [join(ROOT, "build.js"), "--if-stale"], { stdio: "ignore" });
  const plain = "no channels";
  const busy = "Telegram and Signal";
  const rows: Row[] = [
    {
      name: "cold start to /readyz",
      size: plain,
      unit: "ms",
      samples: await startsOf(undefined, STARTS),
      target: "< 300",
    },
    { name: "idle RSS", size: plain, unit: "MB", samples: await idleOf(undefined), target: "< 90" },
  ];
  await withSilentPlatform(async (url) => {
    const telegram = { botToken: "1:bench", apiRoot: url };
    const signal = { number: "+15550000001", url };
    const config = { channels: { telegram, signal } };
    const samples = await startsOf(config, STARTS_WITH_CHANNELS);
    rows.push({ name: "cold start to /readyz", size: busy, unit: "ms", samples });
    rows.push({ name: "idle RSS", size: busy, unit: "MB", samples: await idleOf(config) });
  });
  // Rows without samples are dropped: without /proc the memory is unknown.
  return rows.filter(({ samples }) => samples.length > 0);
}
