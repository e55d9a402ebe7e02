// The configuration of traces: disabled by default, the destination, and valid headers.

import { expect, test } from "vitest";
import { describeSettings } from "../src/config/describe.ts";
import { loadSettings } from "../src/config.ts";
import { temporaryFolder } from "./kit/engine/engine.ts";
import { writeHome } from "./kit/process/fleet.ts";

function load(traces: Record<string, unknown>, env: Record<string, string> = {}) {
  const home = temporaryFolder();
  writeHome(home, { telemetry: { traces } });
  return loadSettings({ env, home });
}

function good(traces: Record<string, unknown>, env: Record<string, string> = {}) {
  const loaded = load(traces, env);
  if (!loaded.ok) throw new Error(loaded.error);
  return loaded.value.settings;
}

function bad(traces: Record<string, unknown>, env: Record<string, string> = {}): string {
  const loaded = load(traces, env);
  if (loaded.ok) throw new Error("it was accepted");
  return loaded.error;
}

test("TL1: traces are disabled by default, and the variable of a collector does not enable them", () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };
  expect(good({}, env)).not.toHaveProperty("traces");
  expect(good({ enabled: true })).toMatchObject({
    traces: {
      endpoint: "http://127.0.0.1:4318/v1/traces",
      headers: {},
      sampleRatio: 1,
      content: false,
      serviceName: "parley",
    },
  });
});

test("the collector comes from the file, else from the environment variable for traces, else from the general variable", () => {
  const OTEL_EXPORTER_OTLP_ENDPOINT = "http://all:4318/";
  const OTEL_EXPORTER_OTLP_TRACES_ENDPOINT = "https://traces/own";
  const at = (more: object, env: Record<string, string>) =>
    good({ enabled: true, ...more }, env).traces?.endpoint;
  expect(at({}, { OTEL_EXPORTER_OTLP_ENDPOINT })).toBe("http://all:4318/v1/traces");
  expect(at({}, { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT })).toBe(
    "https://traces/own",
  );
  const endpoint = "http://file:1/x";
  expect(at({ endpoint }, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT })).toBe(endpoint);
});

test("G5: an invalid address or header is refused with its path, and no secret is shown", () => {
  const secret = "hunter2-hunter2";
  expect(bad({ endpoint: `http://me:${secret}@c/v1/traces` })).toContain(
    "telemetry.traces.endpoint: must not contain user",
  );
  expect(bad({ endpoint: "ftp://c" })).toContain(
    "telemetry.traces.endpoint: must be an http or https address",
  );
  const header = bad({ headers: { authorization: `${secret}\r\nx: y` } });
  expect(header).toContain("telemetry.traces.headers.authorization: must be plain text on one line");
  const fromEnv = bad({ enabled: true }, { OTEL_EXPORTER_OTLP_ENDPOINT: `http://me:${secret}@c` });
  expect(fromEnv).toContain("(OTEL_EXPORTER_OTLP_ENDPOINT)");
  for (const text of [header, fromEnv, bad({ endpoint: `http://me:${secret}@c/v1/traces` })]) {
    expect(text).not.toContain(secret);
  }
  expect(bad({ sampleRatio: 1.5 })).toContain("telemetry.traces.sampleRatio");
});

test("G5: described settings contain the names of headers, but neither their values nor the full address", () => {
  const secret = "hunter2-hunter2";
  const endpoint = `https://collector:4318/${secret}/v1/traces?key=${secret}`;
  const shown = describeSettings(good({ enabled: true, endpoint, headers: { "x-key": secret } }));
  expect(shown).toMatchObject({
    traces: { endpoint: "https://collector:4318", headers: { "x-key": "(set)" } },
  });
  expect(JSON.stringify(shown)).not.toContain(secret);
  expect(describeSettings(good({}))).not.toHaveProperty("traces");
});
