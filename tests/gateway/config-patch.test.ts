// Changing single settings of the configuration file over the protocol.

import { expect, test } from "vitest";
import { configFileWith } from "../kit/config-file.ts";
import { openHouse } from "./kit.ts";

const KEY = "sk-proj-abcdefghij0123456789ABCDEF";
const FILE = `// Ours.
{
  models: { providers: { local: {
    api: 'openai-completions', baseUrl: "http://127.0.0.1:9/v1", // the machine under the desk
    apiKey: "${KEY}", models: [{ id: "m" }],
  } } },
  agents: {
    defaults: { model: "local/m" },
    list: [{ id: "main" }, { id: "ops", name: "Ops" }], // two agents
  },
  session: {
    queueMax: 7, // short
    mainKey: "main" // the usual one
  },
}
`;

async function editing(text: string | undefined = FILE) {
  const file = configFileWith(text);
  const house = await openHouse({
    ...{ checkConfig: file.checkConfig, configFile: file.configFile },
    gateway: { tokens: [{ token: "reader-token", role: "operator", scopes: ["operator.read"] }] },
  });
  const client = await house.client();
  const { revision } = await client.request("config.get", {});
  return { file, house, client, revision };
}

test("config.patch changes single settings, and keeps comments, spelling and secrets", async () => {
  const { client, file, revision } = await editing();
  const saved = await client.request("config.patch", {
    changes: [
      { path: "session.queueMax", value: 8 },
      { path: "agents.list[1].model", value: "local/m" },
      { path: "agents.list[2]", value: { id: "third" } },
      { path: "agents.list[1].name", unset: true },
      { path: "session.dmScope", value: "per-peer" },
      { path: "tools.agentToAgent.enabled", value: true },
    ],
    revision,
  });
  expect(file.read()).toBe(
    FILE.replace("queueMax: 7", "queueMax: 8")
      .replace('{ id: "ops", name: "Ops" }', '{ id: "ops", model: "local/m" }, {id:"third"}')
      .replace(
        'mainKey: "main" // the usual one',
        'mainKey: "main", // the usual one\n    dmScope: "per-peer"',
      )
      .replace("  },\n}\n", "  },\n  tools: {\n    agentToAgent: {\n      enabled: true,\n    },\n  },\n}\n"),
  );
  expect(saved).toMatchObject({ saved: true, errors: [] });
  expect(saved.changed).toEqual(expect.arrayContaining(["agents", "session", "tools"]));
  expect(saved.restart).toContain("session.dmScope");
  expect(saved.diff).toEqual(
    expect.arrayContaining(["-    queueMax: 7, // short", "+    queueMax: 8, // short"]),
  );
  expect(saved.diff[0]).toMatch(/^@@ -\d+,\d+ \+\d+,\d+ @@$/);
  expect((await client.request("config.get", {})).revision).toBe(saved.revision);
});

test("a dry run of config.patch and config.set returns the diff and the problems, and writes nothing", async () => {
  const { client, file, revision } = await editing();
  const changes = [{ path: "session.queueMax", value: -1 }];
  const found = await client.request("config.patch", { changes, revision, dryRun: true });
  expect(found).toMatchObject({
    saved: false,
    revision,
    diff: expect.arrayContaining(["+    queueMax: -1, // short"]),
  });
  expect(found.errors).toEqual([expect.stringContaining("session.queueMax: must be at least 1")]);
  const { text } = await client.request("config.get", {});
  const edited = text.replace("queueMax: 7", "queueMax: 9");
  const fine = await client.request("config.set", { text: edited, revision, dryRun: true });
  expect(fine).toMatchObject({
    saved: false,
    revision,
    errors: [],
    changed: expect.arrayContaining(["session"]),
  });
  await expect(client.request("config.patch", { changes, revision })).rejects.toMatchObject({
    reason: "invalid_config",
  });
  expect(file.read()).toBe(FILE);
});

test("I14: a diff shows no secret, neither an old nor a new one", async () => {
  const { client, file, revision } = await editing();
  const path = "models.providers.local.apiKey";
  const saved = await client.request("config.patch", {
    changes: [{ path, value: "another-secret-key" }],
    revision,
  });
  expect(file.read()).toBe(FILE.replace(KEY, "another-secret-key"));
  expect(saved.diff.join("\n")).toMatch(/-.*\[hidden \w+\].*\n\+.*\[hidden \w+\]/);
  expect(JSON.stringify(saved)).not.toMatch(/another-secret|sk-proj/);
});

test.each([
  [{ path: "sesion.queueMax", value: 1 }, "invalid_config", "nearest valid key is session"],
  [{ path: "session.quueMax", unset: true }, "invalid_config", "nearest valid key is session.queueMax"],
  [{ path: "agents.list[5]", value: {} }, "invalid_config", "whose next item is at its length"],
  [{ path: "session.queueMax.x", value: 1 }, "invalid_config", "session.queueMax.x"],
  [{ path: "a..b", value: 1 }, "invalid_argument", "a..b"],
  [{ path: "session.queueMax" }, "invalid_argument", "either a value or unset"],
] as const)("config.patch refuses %o", async (change, reason, words) => {
  const { client, file, revision } = await editing();
  const refused = await client
    .request("config.patch", { changes: [change], revision })
    .catch((error) => error);
  expect(refused).toMatchObject({ reason });
  expect(`${refused.message} ${refused.details.hint}`).toContain(words);
  expect(file.read()).toBe(FILE);
});

test("config.patch creates a file, and leaves one of plain JSON valid JSON", async () => {
  const none = await editing("");
  const changes = [{ path: "session.queueMax", value: 8 }];
  await none.client.request("config.patch", { changes, revision: none.revision });
  expect(none.file.read()).toBe("{\n  session: {\n    queueMax: 8,\n  },\n}\n");
  const json = await editing('{"session": {"mainKey": "main"}}');
  await json.client.request("config.patch", { changes, revision: json.revision });
  expect(json.file.read()).toBe('{"session": {"mainKey": "main", "queueMax": 8}}');
});

test.each(["models.providers.__proto__.baseUrl", "models.providers.constructor.baseUrl", "a.prototype.b"])(
  "config.patch refuses the path %s, and reaches no object of the gateway",
  async (path) => {
    const { client, file, revision } = await editing();
    const changes = [{ path, value: "x" }];
    const answer = await client.request("config.patch", { changes, revision, dryRun: true });
    expect(answer.errors).toEqual([`the change of "${path}" is not valid`]);
    expect([({} as { baseUrl?: string }).baseUrl, Reflect.get(Object, "baseUrl")]).toEqual([
      undefined,
      undefined,
    ]);
    expect(file.read()).toBe(FILE);
  },
);
