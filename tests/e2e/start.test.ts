// The modules that a gateway loads before its first request and for a run. They determine its start time and
// its memory.

import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { connect } from "../../src/contract/client/node.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { startModelServer } from "../kit/model-server/server.ts";
import { TOKEN } from "../kit/process/fleet.ts";
import { homeWith } from "../kit/process/gateway-process.ts";

const MAIN = new URL("../../src/main.ts", import.meta.url).href;
const SRC = fileURLToPath(new URL("../../src/", import.meta.url));

/** A program that runs src, and prints the loaded modules and the formatters of dates when it is asked. */
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
  const formatters = [];
  Intl.DateTimeFormat = new Proxy(Intl.DateTimeFormat, {
    construct(target, given) {
      formatters.push(new Error().stack);
      return new target(...given);
    },
  });
  process.once("message", () => process.send({ urls, builtins: process.moduleLoadList, formatters }));
  const { main } = await import(${JSON.stringify(MAIN)});
  await main(["gateway"]);
`;

interface Loaded {
  readonly urls: readonly string[];
  readonly builtins: readonly string[];
  /** The stack of each call that created a formatter of dates. */
  readonly formatters: readonly string[];
}

/** Starts a gateway, does `work` with it, and returns the work's result and what is loaded then. */
async function startAndAsk<T>(
  config: Record<string, unknown>,
  work: (url: string) => Promise<T>,
): Promise<{ result: T; loaded: Loaded }> {
  const home = homeWith(config);
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
  const result = await work(url);
  child.send("what is loaded?");
  const [loaded] = (await once(child, "message")) as [Loaded];
  return { result, loaded };
}

const OF_PINO = [
  ...["@pinojs/redact", "atomic-sleep", "on-exit-leak-free", "pino", "pino-std-serializers"],
  ...["quick-format-unescaped", "safe-stable-stringify", "sonic-boom", "thread-stream"],
];

/** Modules that are loaded only when they are needed. */
const LATER = [
  /^(agent\/model\/(provider|pi-client|wire|openai|anthropic)|execute\/(?!recorder)|telemetry\/)/,
  /^sandbox\/(bubblewrap|docker|find|seccomp)/,
  /^cli\/(channels|chat|demo)\//,
  /^contract\/client\//,
  /^gateway\/(http\/(http|request)\.ts|page)\b/,
  /^features\/(discord|imessage|signal|telegram|whatsapp)\/(?!\1\.ts)/,
  /^features\/(acp|doctor|import|init|join|mcp-server)\/(?!\1\.ts|commands\.ts|contract|rows|settings|words)/,
  /^features\/(openai|replay|service)\/(?!\1\.ts|contract|errors|rows|tables)/,
  /^features\/a2a\/(remote|door\/(?!notify)|peers\/(?!commands|contract|peer\b))/,
  /^features\/hooks\/(door|proof|request|turns)\b/,
  /^store\/(postgres|transfer|show)/,
  /^tools\/mcp\/(?!names)/,
];

test("HT3, LI1, NH1: a gateway that has only answered /readyz has loaded no module of an unused feature", async () => {
  const { result, loaded } = await startAndAsk({}, async (url) => (await fetch(`${url}/readyz`)).status);
  expect(result).toBe(200);
  const packages = loaded.urls.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []);
  expect([...new Set(packages)].sort()).toEqual([...OF_PINO, "commander", "diff", "json5", "kysely"].sort());
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

test("a request without a token for a path of A2A loads no library of A2A", async () => {
  const { result, loaded } = await startAndAsk({}, async (url) => (await fetch(`${url}/a2a/main`)).status);
  expect(result).toBe(401);
  expect(loaded.urls.filter((url) => url.includes("@a2a-js"))).toEqual([]);
});

test("NH1: after a run with a model no formatter of dates is loaded", async () => {
  const models = await startModelServer(() => "the answer");
  cleanup(() => models.close());
  const provider = models.provider("openai-completions");
  const config = {
    models: { providers: { [provider.id]: { ...provider, id: undefined } } },
    agents: { defaults: { model: `${provider.id}/test-model` } },
  };
  const { result, loaded } = await startAndAsk(config, async (url) => {
    const client = await connect({ url, token: TOKEN });
    const run = await client.agent({ sessionKey: "main", message: "hello" }).done;
    client.close();
    return run;
  });
  expect(result).toMatchObject({ status: "ok", result: { text: "the answer" } });
  // Node's tables of languages, which a formatter reads, take 8 MB.
  expect(loaded.formatters).toEqual([]);
  expect(JSON.stringify(models.requests[0])).toMatch(/ \d{4}-\d\d-\d\d \(time zone /);
});
