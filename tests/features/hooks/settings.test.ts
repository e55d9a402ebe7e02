// The configuration of incoming web hooks.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describeSettings } from "../../../src/config/describe.ts";
import { messageOf, pathOf } from "../../../src/features/hooks/settings.ts";
import { run } from "../../cli/kit.ts";
import { useConfigHome } from "../../kit/process/config-home.ts";
import { homeWith } from "../../kit/process/gateway-process.ts";

const config = useConfigHome();
const SECRET = "secret-of-the-sender";
const TOKEN = "token-of-the-hooks-0123456789";

const hooks = (more: object) => JSON.stringify({ hooks: { enabled: true, token: TOKEN, ...more } });
const mapping = (more: object) => hooks({ mappings: [{ id: "a", message: "x", ...more }] });

const withTelegram = (more: object) =>
  JSON.stringify({
    channels: { telegram: { botToken: "1:token" } },
    hooks: { enabled: true, token: TOKEN, mappings: [{ id: "a", message: "x", deliver: true, ...more }] },
  });

test("a mapping may deliver to a chat of a configured channel, or to the last chat in which people wrote", () => {
  const place = { channel: "telegram", to: "-100", threadId: "5" };
  for (const one of [place, { channel: "last" }])
    expect(config().good(withTelegram(one)).settings.hooks.mappings).toMatchObject([one]);
});

test("a mapping has default values, and its secrets are never shown", () => {
  const { settings, warnings } = config().good(
    hooks({
      mappings: [
        { id: "github", preset: "github", secret: SECRET, match: { events: ["push"] }, deliver: true },
        { id: "ci", preset: "hmac", secret: SECRET, message: "{{ body.a[0].b }}", match: { path: "builds" } },
        { id: "plain", message: "x" },
      ],
    }),
  );
  expect(warnings).toEqual([]);
  const [github, , plain] = settings.hooks.mappings;
  expect(github && messageOf(github)).toContain("GitHub tells of {{event}}");
  expect(plain).toEqual({
    id: "plain",
    message: "x",
    preset: "token",
    match: { events: [] },
    deliver: false,
  });
  expect(settings.hooks.mappings.map(pathOf)).toEqual(["github", "builds", "plain"]);
  const shown = JSON.stringify(describeSettings(settings));
  for (const secret of [SECRET, TOKEN]) expect(shown).not.toContain(secret);
});

const WRONG: [string, string, RegExp][] = [
  ["a short token", hooks({ token: "short" }), /hooks.token: must have at least 16/],
  ["a short secret", mapping({ preset: "hmac", secret: "x" }), /secret: must have at least 16/],
  ["no secret", mapping({ preset: "github" }), /secret: is missing/],
  ["a secret too many", mapping({ secret: SECRET }), /secret: is valid only with/],
  ["no message", hooks({ mappings: [{ id: "a" }] }), /message: is missing/],
  ["another field", mapping({ message: "{{env.HOME}}" }), /message: holds {{env.HOME}}/],
  ["a field that is code", mapping({ message: "{{body.a()}} {{1+1}}" }), /message: holds/],
  ["too many fields", mapping({ message: "{{body}}".repeat(51) }), /more than 50/],
  ["another agent", mapping({ agentId: "nobody" }), /agentId: there is no agent/],
  ["a key that is none", mapping({ sessionKey: "no key" }), /sessionKey: is not a session key/],
  ["a reserved path", mapping({ id: "wake" }), /not agent or wake/],
  [
    "a path of two",
    hooks({
      mappings: [
        { id: "a", message: "x" },
        { id: "b", message: "x", match: { path: "a" } },
      ],
    }),
    /another mapping/,
  ],
  [
    "an id of two",
    hooks({
      mappings: [
        { id: "a", message: "x" },
        { id: "a", message: "x" },
      ],
    }),
    /is listed twice/,
  ],
  ["a place without deliver", mapping({ to: "main" }), /deliver: must be true/],
  ["another channel", mapping({ deliver: true, channel: "telegram", to: "1" }), /there is no channel/],
  ["a channel without a chat", withTelegram({ channel: "telegram" }), /to: is missing/],
  ["another account", withTelegram({ channel: "telegram", to: "1", accountId: "x" }), /no account "x"/],
  [
    "an account of webchat",
    mapping({ deliver: true, accountId: "x" }),
    /accountId: is not valid with webchat/,
  ],
  ["events without GitHub", mapping({ match: { events: ["push"] } }), /events are valid only with/],
  ["a header without hmac", mapping({ deliveryHeader: "x" }), /deliveryHeader: is valid only with/],
];
test.each(WRONG)("%s is reported with its path", (_, text, words) => {
  const problems = config().problems(text);
  expect(problems).toContainEqual(expect.stringMatching(words));
  expect(problems.join()).not.toContain(SECRET);
});

test("using the same token for the gateway and for hooks is reported, unless hooks are disabled", () => {
  const both = (enabled: boolean) =>
    `{ gateway: { auth: { token: "${TOKEN}" } }, hooks: { enabled: ${enabled}, token: "${TOKEN}" } }`;
  expect(config().problems(both(true))).toEqual([expect.stringContaining("hooks.token: is the same")]);
  expect(config().good(both(false)).warnings).toEqual([]);
});

test("the doctor reports a missing hook token, and a hook token that equals the gateway's token", async () => {
  const found = async (home: string) => {
    const { out } = await run(home, ["--json", "doctor"]);
    const { findings } = JSON.parse(out) as { findings: { name: string; level: string; text: string }[] };
    return findings.find(({ name }) => name === "hooks");
  };
  const without = homeWith({ hooks: { enabled: true } });
  expect(await found(without)).toMatchObject({ level: "warning", text: expect.stringContaining("not set") });
  const own = homeWith({ gateway: { port: 0 }, hooks: { enabled: true, token: TOKEN } });
  expect(await found(own)).toMatchObject({ level: "ok" });
  const state = join(own, ".parley", "state");
  mkdirSync(state, { recursive: true, mode: 0o700 });
  writeFileSync(join(state, "gateway-token"), `${TOKEN}\n`, { mode: 0o600 });
  expect(await found(own)).toMatchObject({
    level: "problem",
    text: expect.stringContaining("gateway's own"),
  });
  expect(await found(homeWith({}))).toBeUndefined();
});
