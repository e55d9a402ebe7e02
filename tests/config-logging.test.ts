// The settings of the log, and the rules that decide which settings may be shown.

import { expect, test } from "vitest";
import { describeSettings, secretsOf, secretsOfEnvironment } from "../src/config/describe.ts";
import { DISCLOSURE } from "../src/config/disclosure.ts";
import { LOG_PARTS } from "../src/core/shapes/settings/logging.ts";
import type { Settings } from "../src/core/shapes/settings/settings.ts";
import { Redactor } from "../src/core/text/redact/redact.ts";
import { useConfigHome } from "./kit/process/config-home.ts";

const home = useConfigHome();

const withEnv = (env: Record<string, string>, text = "{}") => home().good(text, { env }).settings.logging;

test("the file sets log levels for all parts and for single parts; the default level is info, the default format auto", () => {
  expect(withEnv({})).toEqual({ level: "info", parts: {}, format: "auto" });
  const text = '{ logging: { level: "warn", parts: { store: "debug" }, format: "json" } }';
  expect(withEnv({}, text)).toEqual({ level: "warn", parts: { store: "debug" }, format: "json" });
});

test("PARLEY_LOG replaces all levels of the file, and PARLEY_LOG_FORMAT replaces the format", () => {
  const text = '{ logging: { level: "warn", parts: { store: "debug" }, format: "json" } }';
  expect(withEnv({ PARLEY_LOG: "error" }, text)).toEqual({ level: "error", parts: {}, format: "json" });
  const env = { PARLEY_LOG: "info, store=debug,channels=warn", PARLEY_LOG_FORMAT: "pretty" };
  const parts = { store: "debug", channels: "warn" };
  expect(withEnv(env, text)).toEqual({ level: "info", parts, format: "pretty" });
});

test.each([
  [{ PARLEY_LOG: "loud" }, '"loud" is not a valid level; write a level (silent, error, warn, info, debug)'],
  [{ PARLEY_LOG: "stor=debug" }, `the log has no part "stor": its parts are ${LOG_PARTS.join(", ")}`],
  [{ PARLEY_LOG: "store=debug=x" }, 'like "info,store=debug"'],
  [{ PARLEY_LOG_FORMAT: "xml" }, '"xml" is not one of auto, json, pretty'],
])("the log level %j is refused with a message that shows valid values", (env, words) => {
  expect(home().problems("{}", { env }).join("\n")).toContain(words);
});

test("an unknown part is refused with a list of all parts", () => {
  const [problem] = home().problems('{ logging: { parts: { database: "debug" } } }');
  expect(problem).toContain("logging.parts.database");
  expect(problem).toContain(LOG_PARTS.join(", "));
});

/** Adds a field that no disclosure rule covers to every object in the settings. */
function withStrangers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withStrangers);
  if (typeof value !== "object" || value === null) return value;
  const inner = Object.entries(value).map(([key, one]) => [key, withStrangers(one)]);
  return { ...Object.fromEntries(inner), strangerKey: "stranger-value" };
}

const EVERYTHING = `{
  gateway: { auth: { token: "planted-01-and-long-enough", tokens: [{ token: "planted-02-and-long-enough", scopes: ["operator.read"] }] } },
  store: { postgresUrl: "postgres://me:planted-03@h/d" },
  models: { providers: { p: { api: "openai-completions", baseUrl: "http://h/v1?k=Planted04aaaabbbbcccc1111",
    apiKey: "planted-05", headers: { "x-api-key": "planted-06" }, models: [{ id: "m" }] } } },
  agents: { list: [{ id: "main" }, { id: "acp", runtime: { type: "acp",
    command: ["prog", "--api-key", "planted-07"], env: { MY_TOKEN: "planted-08" } } }] },
  tools: { mcp: { servers: {
    a: { command: "x", args: ["--token=planted-09"], env: { API_KEY: "planted-10" } },
    b: { url: "https://h/mcp?token=planted-11", headers: { Authorization: "Bearer planted-12" } } } } },
  channels: { telegram: { botToken: "planted-13" }, discord: { token: "planted-14" },
    whatsapp: { phoneNumberId: "12345", accessToken: "planted-15", appSecret: "planted-16", verifyToken: "planted-17" } },
  hooks: { enabled: true, token: "planted-18-long-enough", mappings: [{ id: "gh", preset: "github",
    secret: "planted-19-long-enough", message: "x" }],
    outgoing: [{ url: "https://h/p?key=planted-20", events: ["run.ended"], secret: "planted-21-long-enough" }] },
  telemetry: { traces: { enabled: true, endpoint: "http://c/v1/traces", headers: { authorization: "Basic planted-22" } } },
}`;

test("DC1: secrets are hidden, and so is every setting that no rule allows to be shown", () => {
  const { settings } = home().good(EVERYTHING);
  const strange = withStrangers(settings) as Settings;
  const shown = JSON.stringify(describeSettings(strange));
  // Only names that the user chose (groups, environments) may be shown.
  expect(shown.match(/stranger-value/g) ?? []).toEqual([]);
  expect(shown).not.toMatch(/planted/i);
  expect(Object.keys(DISCLOSURE).sort()).toEqual(Object.keys(describeSettings(settings)).sort());
});

test("DC2: every secret in the settings is redacted in plain text, in JSON and in addresses", () => {
  const redactor = new Redactor(secretsOf(home().good(EVERYTHING).settings));
  for (let number = 1; number <= 22; number += 1) {
    const known = EVERYTHING.match(
      new RegExp(`planted-?${String(number).padStart(2, "0")}[\\w-]*`, "i"),
    )?.[0];
    expect(redactor.mask(`he said ${known} twice`), `number ${number}`).toBe("he said [redacted] twice");
  }
  redactor.learn(['a "quoted" word/with=signs']);
  expect(redactor.mask(JSON.stringify({ x: 'a "quoted" word/with=signs' }))).toBe('{"x":"[redacted]"}');
  expect(redactor.mask(`/?q=${encodeURIComponent('a "quoted" word/with=signs')}`)).toBe("/?q=[redacted]");
});

test("an environment variable with a secret is recognized by its name; ordinary words, paths and short values are no secrets", () => {
  const env = {
    ...{ PGPASSWORD: "velvet-curtain", MY_TOKEN: "abcdefgh", OTEL_EXPORTER_OTLP_HEADERS: "x-key=velvet-key" },
    ...{
      DATABASE_URL: "postgres://u:velvet-pass@h/d",
      HOME: "/srv/somebody",
      PATH: "/usr/bin:/bin",
      PWD: "/srv/project",
      OLDPWD: "/srv/earlier",
      LANG: "C.UTF-8",
    },
    ...{ DB_PWD: "velvet-door" },
    ...{ ANTHROPIC_API_KEY: "key" },
  };
  const found = secretsOfEnvironment(env);
  for (const one of ["velvet-curtain", "abcdefgh", "velvet-key", "velvet-pass", "velvet-door"])
    expect(found).toContain(one);
  // The shell keeps the names of folders in PWD and OLDPWD.
  const plain = ["/srv/somebody", "/usr/bin:/bin", "/srv/project", "/srv/earlier", "C.UTF-8", "key"];
  for (const one of plain) expect(found).not.toContain(one);
});
