// The export of traces to a collector: spans arrive unchanged, and the collector's error texts are never
// repeated.

import { expect, test } from "vitest";
import { openOtlp } from "../../src/telemetry/otlp.ts";
import type { Exporter } from "../../src/telemetry/queue.ts";
import type { Span } from "../../src/telemetry/span.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { serveHttp } from "../kit/loopback.ts";
import { COLLECTOR_WORDS, startCollector } from "../kit/otlp-collector.ts";

const SPAN: Span = {
  traceId: "0123456789abcdef0123456789abcdef",
  spanId: "00000000000000ff",
  name: "chat m",
  kind: "client",
  startMs: 1_767_225_600_123.25,
  endMs: 1_767_225_600_124.5,
  attributes: { text: "a\u0000\ud800b", whole: 3, part: 0.5, yes: true, list: ["x", "y"] },
};

function open(endpoint: string): Exporter {
  const settings = { endpoint, headers: {}, sampleRatio: 1, content: false, serviceName: "here" };
  const exporter = openOtlp(settings, { version: "1", instanceId: "i" });
  cleanup(() => exporter.close());
  return exporter;
}

test("ids, times in microseconds and attributes of every type arrive unchanged", async () => {
  const collector = await startCollector();
  const parentSpanId = "00000000000000ee";
  const child: Span = { ...SPAN, spanId: "00000000000000aa", parentSpanId, failed: { words: "no" } };
  expect(await open(collector.url).export([SPAN, child])).toBeUndefined();
  const [root, below] = collector.spans;
  expect(root).toMatchObject({
    traceId: SPAN.traceId,
    spanId: SPAN.spanId,
    parentSpanId: undefined,
    kind: 3,
  });
  expect(root?.attributes).toMatchObject({ whole: 3, part: 0.5, yes: true, list: ["x", "y"] });
  expect([root?.startMs, root?.endMs]).toEqual([SPAN.startMs, SPAN.endMs]);
  expect(root?.status.code ?? 0).toBe(0);
  expect(below).toMatchObject({ parentSpanId, status: { code: 2, message: "no" } });
});

test("a span that ends before it starts, for example because a clock was set back, is exported", async () => {
  const collector = await startCollector();
  await open(collector.url).export([{ ...SPAN, endMs: SPAN.startMs - 60_000 }]);
  expect(collector.spans[0]?.endMs).toBe(SPAN.startMs);
});

for (const status of [302, 400, 401, 429, 500, 503]) {
  test(`OT2: a collector that answers ${status} has accepted nothing, and its error text is not repeated`, async () => {
    const collector = await startCollector();
    collector.behave(status);
    const problem = await open(collector.url).export([SPAN]);
    expect(problem).toMatch(/^the collector (did not accept the spans|answered \d{3})$/);
    expect(problem).not.toContain(COLLECTOR_WORDS);
    expect(collector.bodies).toHaveLength(1);
  });
}

test("OT3: after a redirect, spans and headers are not sent to the other address", async () => {
  const other = await startCollector();
  const moved = await serveHttp((request, response) => {
    request.resume();
    response.writeHead(307, { location: other.url }).end();
  });
  cleanup(() => moved.close());
  expect(await open(`${moved.origin}/v1/traces`).export([SPAN])).toBe("the collector answered 307");
  expect(other.bodies).toEqual([]);
});

test("OT2: a refused connection is reported with the system's error code, without the address", async () => {
  const collector = await startCollector();
  const { url } = collector;
  await collector.close();
  expect(await open(`${url}?token=hunter2-hunter2`).export([SPAN])).toBe(
    "the collector cannot be reached: ECONNREFUSED",
  );
});
