// The modules that a gateway loads before its first request. They determine its start time and its memory.

import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { cleanup } from "../kit/engine/engine.ts";
import { homeWith } from "../kit/process/gateway-process.ts";

const MAIN = new URL("../../src/main.ts", import.meta.url).href;
const SRC = fileURLToPath(new URL("../../src/", import.meta.url));

/** A program that runs src, and prints the loaded modules when it is asked. */
const PROGRAM = `
  import { enableCompileCache, registerHooks } from "node:module";
  enableCompileCache();
  const urls = [];
  registerHooks({
    load(url, context, next) {
      urls.push(url);
      return next(url, context);
    },
  });
  process.once("message", () => process.send({ urls, builtins: process.moduleLoadList }));
  const { main } = await import(${JSON.stringify(MAIN)});
  await main(["gateway"]);
`;

interface Loaded {
  readonly urls: readonly string[];
  readonly builtins: readonly string[];
}

async function startAndAsk(): Promise<{ probe: number; loaded: Loaded }> {
  const home = homeWith({});
  const file = join(home, "program.mjs");
  writeFileSync(file, PROGRAM);
  const env = { PATH: process.env.PATH, HOME: home, PARLEY_LOG: "warn" };
  const child = fork(file, { env, execPath: process.execPath, execArgv: [], silent: true });
  const exited = once(child, "exit");
  cleanup(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  let said = "";
  const url = await new Promise<string>((resolve, reject) => {
    const hear = (piece: Buffer): void => {
      said += piece.toString();
      const found = /http:\/\/[\d.]+:\d+/.exec(said);
      if (found !== null) resolve(found[0]);
    };
    child.stdout?.on("data", hear);
    child.stderr?.on("data", hear);
    child.once("exit", () => reject(new Error(`the gateway ended: ${said}`)));
  });
  const { status } = await fetch(`${url}/readyz`);
  child.send("what is loaded?");
  const [loaded] = (await once(child, "message")) as [Loaded];
  return { probe: status, loaded };
}

const OF_PINO = [
  ...["@pinojs/redact", "atomic-sleep", "on-exit-leak-free", "pino", "pino-std-serializers"],
  ...["quick-format-unescaped", "safe-stable-stringify", "sonic-boom", "thread-stream"],
];

/** Modules that are loaded only when they are needed. */
const LATER = [
  /^(agent\/(acp|model\/(provider|pi-client|wire|openai|anthropic))|execute\/(?!recorder)|import\/|telemetry\/)/,
  /^sandbox\/(bubblewrap|docker|find|seccomp)/,
  /^channels\/(discord|imessage|signal|telegram|whatsapp)\//,
  /^cli\/(acp|channels|chat|demo|doctor|mcp|node|service)\//,
  /^contract\/client\//,
  /^gateway\/(hooks|http\/(http|request)\.ts|mcp|openai|page)\b/,
  /^store\/(postgres|transfer|show)/,
  /^tools\/mcp\/(?!names)/,
];

test("HT3, LI1, NH1: a gateway that has only answered /readyz has loaded no module of an unused feature", async () => {
  const { probe, loaded } = await startAndAsk();
  expect(probe).toBe(200);
  const packages = loaded.urls.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []);
  expect([...new Set(packages)].sort()).toEqual([...OF_PINO, "commander", "json5", "kysely", "zod"].sort());
  const own = loaded.urls.flatMap((url) => {
    const path = url.startsWith("file:") ? fileURLToPath(url) : "";
    return path.startsWith(SRC) ? [path.slice(SRC.length)] : [];
  });
  expect(own).toContain("gateway/http/listener.ts");
  expect(own.filter((path) => LATER.some((rule) => rule.test(path)))).toEqual([]);
  // Node's own fetch, HTTP/2 and TLS each take megabytes. A single import of node:http loads fetch.
  const heavy = /NativeModule (internal\/deps\/undici|internal\/http2|http2|https|tls|_tls)/;
  expect(loaded.builtins.filter((name) => heavy.test(name))).toEqual([]);
});
