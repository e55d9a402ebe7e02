// Modules that a process has loaded after one request through one of our own model clients.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { cleanup } from "../kit/engine/engine.ts";
import { startModelServer } from "../kit/model-server/server.ts";
import { modelOf, requestFor, WIRE_APIS } from "./clients-kit.ts";

const src = (file: string): string => new URL(`../../src/${file}`, import.meta.url).href;

const PROGRAM = `
  import { registerHooks } from "node:module";
  const urls = [];
  registerHooks({
    load(url, context, next) {
      urls.push(url);
      return next(url, context);
    },
  });
  const { openModelPort } = await import(${JSON.stringify(src("agent/model/port.ts"))});
  const { plainClock } = await import(${JSON.stringify(src("world/plain.ts"))});
  const world = { clock: plainClock, random: Math.random, log: console };
  const request = JSON.parse(process.argv[2]);
  const { kind } = await openModelPort(world).call(request, () => {}, new AbortController().signal);
  console.log(JSON.stringify({ kind, urls }));
`;

test.each(WIRE_APIS)(
  "%s: the client loads no provider's SDK, and no part of pi-ai that imports one",
  async (api) => {
    const server = await startModelServer(() => "ok");
    const folder = mkdtempSync(join(tmpdir(), "parley-loading-"));
    cleanup(async () => {
      rmSync(folder, { recursive: true });
      await server.close();
    });
    const file = join(folder, "program.mjs");
    writeFileSync(file, PROGRAM);
    const request = JSON.stringify(requestFor(modelOf(server.provider(api))));
    const { stdout } = await promisify(execFile)(process.execPath, [file, request]);
    const { kind, urls } = JSON.parse(stdout.trim()) as { kind: string; urls: string[] };
    expect(kind).toBe("message");
    const packages = urls.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []);
    expect(new Set(packages)).toEqual(new Set(["@earendil-works/pi-ai"]));
    const files = urls.flatMap((url) => /pi-ai\/dist\/(.*)$/.exec(url)?.[1] ?? []).sort();
    const catalogue = ["model-catalog.js", "providers/anthropic.models.js", "providers/data/anthropic.json"];
    expect(files).toEqual(
      [
        ...["api/simple-options.js", "api/transform-messages.js", "utils/estimate.js", "utils/overflow.js"],
        ...["utils/retry.js", "utils/text.js", "utils/transcript.js"],
        ...(api === "anthropic-messages" ? catalogue : ["utils/hash.js"]),
      ].sort(),
    );
  },
);
