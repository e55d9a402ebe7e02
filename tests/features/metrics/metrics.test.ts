// Metrics of a gateway after real runs, over HTTP, for authorized callers only.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { LiveEvent } from "../../../src/core/shapes/event.ts";
import type { TokenSettings } from "../../../src/core/shapes/settings/settings.ts";
import { Metrics } from "../../../src/features/metrics/counters.ts";
import { Counter, Histogram } from "../../../src/features/metrics/figures.ts";
import { History } from "../../../src/features/metrics/history.ts";
import { exposition } from "../../../src/features/metrics/text.ts";
import { type House, openHouse, TOKEN } from "../../gateway/kit.ts";
import { startProcess } from "../../kit/process/gateway-process.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { fakeWorld } from "../../kit/world.ts";
import { histogramFaults, readExposition } from "./exposition.ts";

const { version: VERSION } = JSON.parse(
  readFileSync(new URL("../../../package.json", import.meta.url), "utf8"),
) as { readonly version: string };
const TOKENS: TokenSettings[] = [
  { token: "reader-token", role: "operator", scopes: ["operator.read"] },
  { token: "partial-token", role: "operator", scopes: ["operator.admin"], sessions: ["agent:main:*"] },
  { token: "nothing-token", role: "operator", scopes: [] },
  { token: "device-token", role: "node", scopes: [] },
];

async function scrape(http: string, token = TOKEN) {
  const response = await fetch(`${http}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const text = await response.text();
  return { text, exposed: readExposition(text) };
}

/** Resolves when the ends of this many runs are counted, which may happen after their answers. */
async function ended(house: House, runs: number): Promise<void> {
  const counted = Promise.withResolvers<void>();
  let left = runs;
  const off = house.engine.bus.subscribe((event) => {
    if (event.kind === "run_ended" && --left === 0) counted.resolve();
  });
  await counted.promise;
  off();
}

test("runs are counted by how they ended, with the time in the lane and the execution time", async () => {
  const house = await openHouse({
    play: ({ run }) => {
      if (run.input.text === "fail") throw new Error("no");
      return "yes";
    },
  });
  const client = await house.client();
  const all = ended(house, 3);
  for (const [at, message] of ["a", "b", "fail"].entries())
    await client.agent({ message, idempotencyKey: `run-${at}` }).done;
  await all;
  const { exposed } = await scrape(house.http);
  const value = exposed.value;
  expect(value("parley_runs_ended_total", { state: "ok" })).toBe(2);
  expect(value("parley_runs_ended_total", { state: "error" })).toBe(1);
  expect(value("parley_runs_ended_total", { state: "timeout" })).toBe(0);
  expect(value("parley_run_seconds_count")).toBe(3);
  expect(value("parley_run_queue_seconds_count")).toBe(3);
  expect(value("parley_store_commit_seconds_count")).toBeGreaterThan(6);
  expect(value("parley_runs", { state: "running" })).toBe(0);
  expect(value("parley_slots_taken")).toBe(0);
  expect(value("parley_connections")).toBe(1);
  expect(value("process_resident_memory_bytes")).toBeGreaterThan(1_000_000);
  expect(histogramFaults(exposed)).toEqual([]);
});

test("a run that waits for another run is counted as waiting; both runs count as unfinished runs of the store", async () => {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const house = await openHouse({
    play: async () => {
      begun.resolve();
      await gate.promise;
      return "done";
    },
  });
  const client = await house.client();
  const answer = client.request("tools.invoke", {
    name: "sessions_send",
    arguments: { sessionKey: "agent:main:main", message: "x", timeoutSeconds: 60 },
    sessionKey: "agent:research:main",
  });
  await begun.promise;
  const { exposed } = await scrape(house.http);
  expect(exposed.value("parley_waits_open")).toBe(1);
  expect(exposed.value("parley_runs", { state: "running" })).toBe(1);
  expect([exposed.value("parley_lanes"), exposed.value("parley_lane_runs_max")]).toEqual([1, 1]);
  gate.resolve();
  await answer;
  expect((await scrape(house.http)).exposed.value("parley_waits_open")).toBe(0);
});

test("model calls, tokens and tool calls of a real gateway process are counted", async () => {
  const gateway = await startProcess();
  const client = await gateway.connect();
  await client.agent({ message: "list sessions", idempotencyKey: "run" }).done;
  const { exposed } = await scrape(gateway.httpUrl, gateway.token);
  const model = { provider: "offline", model: "rehearsal" };
  expect(exposed.value("parley_model_calls_total", { ...model, outcome: "message" })).toBe(2);
  expect(exposed.value("parley_model_call_seconds_count", model)).toBe(2);
  expect(exposed.value("parley_tokens_total", { ...model, kind: "output" })).toBeGreaterThan(0);
  expect(exposed.value("parley_cost_usd_total", { ...model, kind: "output" })).toBe(0);
  expect(exposed.value("parley_tool_calls_total", { tool: "sessions_list", outcome: "ok" })).toBe(1);
  expect(exposed.value("parley_info", { version: VERSION })).toBe(1);
  expect(histogramFaults(exposed)).toEqual([]);
});

test("I9: only a token that reads every session gets the metrics, and a refusal has the reason", async () => {
  const house = await openHouse({ gateway: { tokens: TOKENS } });
  await scrape(house.http, "reader-token");
  const ask = async (headers: Record<string, string>) => fetch(`${house.http}/metrics`, { headers });
  expect((await ask({})).status).toBe(401);
  for (const token of ["partial-token", "nothing-token", "device-token"]) {
    const refused = await ask({ authorization: `Bearer ${token}` });
    expect({ token, status: refused.status }).toEqual({ token, status: 403 });
    expect(await refused.text()).not.toContain("parley_");
  }
});

test("ME1: metric labels contain no session key, session label or invented name; refusals are counted by tool and code", async () => {
  const house = await openHouse({ play: () => "planted-reply" });
  const client = await house.client();
  const planted = "planted-7f3a";
  const { key } = await client.request("sessions.create", { label: planted, idempotencyKey: planted });
  await client.agent({ message: planted, sessionKey: key, idempotencyKey: `run-${planted}` }).done;
  const call = (name: string, args: object) =>
    client.request("tools.invoke", { name, arguments: { ...args }, sessionKey: key });
  await call("sessions_send", { sessionKey: `agent:${planted}:main`, message: planted });
  await call("sessions_spawn", { task: planted, agentId: "nobody-there" });
  await call(`${planted}_tool`, {});
  await call(`mcp__${planted}__tool`, {});
  const { text, exposed } = await scrape(house.http);
  for (const hidden of [planted, key, "agent:", "nobody-there", "run-"]) expect(text).not.toContain(hidden);
  const refused = exposed.samples.filter(({ name }) => name === "parley_refusals_total");
  expect(refused.map(({ labels, value }) => [labels.tool, labels.code, value])).toEqual([
    ["sessions_send", "session_not_found", 1],
    ["sessions_spawn", "spawn_denied", 1],
  ]);
  expect(
    exposed.samples
      .filter(({ name, labels }) => name === "parley_tool_calls_total" && labels.tool === "unknown")
      .reduce((sum, { value }) => sum + value, 0),
  ).toBe(2);
});

test("ME2: runs of another process are not counted", async () => {
  const house = await openHouse();
  const run = { runId: "far", sessionKey: "agent:main:main", chainId: "c", startedAt: 1 } as const;
  const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2 };
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const facts = { state: "ok", text: "", usage: { ...usage, cost }, endedAt: 2 } as const;
  house.engine.bus.hear({ kind: "run_started", ...run, queuedMs: 5 });
  house.engine.bus.hear({ kind: "run_ended", ...run, ...facts } satisfies LiveEvent);
  const { exposed } = await scrape(house.http);
  expect(exposed.value("parley_runs_ended_total", { state: "ok" })).toBe(0);
  expect(exposed.value("parley_run_queue_seconds_count")).toBe(0);
});

/** Returns a metric in the Prometheus text format. */
const textOf = (figure: Counter | Histogram): string =>
  exposition([{ ...figure.spec, type: figure.type, samples: figure.samples() }]);

test("FI1: a metric has at most 200 label sets; further sets are counted as `other`", () => {
  const counter = new Counter({ name: "x_total", help: "x", labels: ["name"] });
  for (let at = 0; at < 5_000; at += 1) counter.add(1, `name ${at}`);
  const samples = counter.samples();
  expect(samples).toHaveLength(200);
  expect(samples.find(({ labels }) => labels.name === "other")?.value).toBe(5_000 - 199);
  expect(counter.total()).toBe(5_000);
  counter.add(-3, "name 1");
  counter.add(Number.NaN, "name 1");
  expect(counter.total()).toBe(5_000);
});

test("FI1: label values with the same text form share one label set, because Prometheus rejects repeated lines", () => {
  const counter = new Counter({ name: "x_total", help: "x", labels: ["name"] });
  counter.add(1, `${"a".repeat(99)}\u{1f600}`);
  counter.add(1, `${"a".repeat(99)}\u{2f600}`);
  counter.add(1, "\ud83d");
  counter.add(1, "\ud83e");
  const { samples } = readExposition(textOf(counter));
  expect(samples.map(({ value }) => value)).toEqual([2, 2]);
});

test("the text format escapes names and help, and contains the buckets, sum and count of a histogram", () => {
  const odd = 'a "quoted" \\ back\\nslash,\nof two lines{}=';
  const help = 'Help with \\ and \\n,\nof "two" lines.';
  const spec = { name: "x_seconds", help, labels: ["name"] };
  const histogram = new Histogram(spec, [0.5, 2], () => 0);
  for (const value of [0.25, 0.5, 1, 3]) histogram.observe(value, odd);
  histogram.observe(1e-7, "");
  const text = textOf(histogram);
  expect(text).toContain('x_seconds_bucket{name="",le="+Inf"} 1\nx_seconds_sum{name=""} 1e-7\n');
  const exposed = readExposition(text);
  expect(Object.fromEntries(exposed.types)).toEqual({ x_seconds: "histogram" });
  expect(Object.fromEntries(exposed.helps)).toEqual({ x_seconds: help });
  const own = exposed.samples.filter(({ labels }) => labels.name === odd);
  expect(own.map(({ name, labels, value }) => [name, labels.le, value])).toEqual([
    ["x_seconds_bucket", "0.5", 2],
    ["x_seconds_bucket", "2", 3],
    ["x_seconds_bucket", "+Inf", 4],
    ["x_seconds_sum", undefined, 4.75],
    ["x_seconds_count", undefined, 4],
  ]);
  expect(histogramFaults(exposed)).toEqual([]);
});

test("every number is written as Prometheus reads it", () => {
  const values = [0, -0.5, 1e21, 1e-7, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN];
  const samples = values.map((value, at) => ({ value, labels: { at: String(at) } }));
  const { samples: read } = readExposition(exposition([{ name: "x", help: "x", type: "gauge", samples }]));
  expect(read.map(({ value }) => value)).toEqual(values);
});

const NO_MACHINE = {
  use: () => ({ residentBytes: 1_000, heapUsedBytes: 500, cpuSeconds: 1 }),
  loopDelay: () => undefined,
  stop: () => {},
};

test("HI1: the history covers an hour, with one point every ten seconds", async () => {
  const world = fakeWorld();
  const metrics = new Metrics({
    redactor: plainRedactor,
    clock: world.clock,
    process: NO_MACHINE,
    version: "1",
    servers: [],
  });
  let reads = 0;
  const history = new History(world, metrics, async () => {
    reads += 1;
    if (reads === 3) throw new Error("away");
    return { connections: reads };
  });
  history.start();
  await world.advance(1_000);
  metrics.modelCalled({ ref: "p/m", outcome: "message", ms: 40 });
  await world.advance(10_000);
  const [first] = history.after(0).times;
  const two = history.after(0);
  const valuesOf = (name: string) => two.series.find((one) => one.name === name)?.values;
  expect(valuesOf("connections")).toEqual([1, 2]);
  expect(valuesOf("model_p50")).toEqual([null, 40]);
  expect(valuesOf("queued")).toEqual([null, null]);
  expect(history.after(first ?? 0).times).toHaveLength(1);
  for (let minute = 0; minute < 70; minute += 1) await world.advance(60_000);
  const { times, series, pointsMax } = history.after(0);
  expect(times).toHaveLength(pointsMax);
  expect(series.every(({ values }) => values.length === pointsMax)).toBe(true);
  expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBe((pointsMax - 1) * 10_000);
  expect(JSON.stringify(history.after(0)).length).toBeLessThan(100_000);
  history.stop();
  const before = reads;
  await world.advance(60_000);
  expect(reads).toBe(before);
});

test("rates in the history cover the last minute", async () => {
  const world = fakeWorld();
  const metrics = new Metrics({
    redactor: plainRedactor,
    clock: world.clock,
    process: NO_MACHINE,
    version: "1",
    servers: [],
  });
  const history = new History(world, metrics, async () => ({ connections: 0 }));
  const cost = { input: 0.5, output: 0, cacheRead: 0, cacheWrite: 0, total: 0.5 };
  const usage = { input: 100, output: 20, cacheRead: 0, cacheWrite: 0, totalTokens: 120, cost };
  history.start();
  await world.advance(1_000);
  metrics.modelCalled({ ref: "p/m", outcome: "message", ms: 40, usage });
  await world.advance(70_000);
  const { series } = history.after(0);
  const valuesOf = (name: string) => series.find((one) => one.name === name)?.values;
  expect(valuesOf("tokens")).toEqual([null, 120, 120, 120, 120, 120, 120, 0]);
  expect(valuesOf("cost")).toEqual([null, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0]);
  history.stop();
});
