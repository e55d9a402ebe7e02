// Reading and writing the configuration file over the protocol.

import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { GatewayClient } from "../../../src/contract/client/node.ts";
import { configFileWith } from "../../kit/config-file.ts";
import { startProcess } from "../../kit/process/gateway-process.ts";
import { openHouse } from "../kit.ts";

const KEY = "sk-proj-abcdefghij0123456789ABCDEF";
const SECRETS = [
  KEY,
  "hunter2-hunter2",
  "T00/B00/xyz",
  "plain-words-token",
  "commented-out-key",
  "letter box",
];
const FILE = `// Ours. apiKey: "commented-out-key"
{
  models: { providers: {
    local: {
      api: 'openai-completions', baseUrl: "http://127.0.0.1:9/v1", // the machine under the desk
      apiKey: "${KEY}", models: [{ id: "m" }],
      headers: { "X-Team": "letter box", Authorization: "Bearer \${TEAM_TOKEN}" },
    },
    other: { api: "openai-completions", baseUrl: "http://127.0.0.1:9/v1", apiKey: "\${OTHER_KEY}", models: [{ id: "o" }] },
  } },
  agents: { defaults: { model: "local/m" } },
  tools: { mcp: { servers: { notes: { command: "notes", args: ["--password", "hunter2-hunter2"] } } } },
  hooks: { outgoing: [{ name: "h", url: "https://example.com/T00/B00/xyz", events: ["run.ended"], secret: 'plain-words-token' }] },
}
`;
const ENV = { TEAM_TOKEN: "a-token-from-outside", OTHER_KEY: "another-key-from-outside" };

async function editing(text: string | undefined = FILE) {
  const file = configFileWith(text, ENV);
  const house = await openHouse({
    ...{ checkConfig: file.checkConfig, configFile: file.configFile },
    gateway: {
      tokens: [
        { token: "reader-token", role: "operator", scopes: ["operator.read"] },
        { token: "partial-token", role: "operator", scopes: ["operator.admin"], sessions: ["agent:main:*"] },
      ],
    },
  });
  const client = await house.client();
  return {
    file,
    house,
    client,
    leftovers: () => readdirSync(dirname(file.path)).filter((name) => name.includes(".parley-")),
  };
}

/** Saves the file with one part replaced. */
async function save(client: GatewayClient, part: string, by: string) {
  const { text, revision } = await client.request("config.get", {});
  expect(text).toContain(part);
  return client.request("config.set", { text: text.replace(part, by), revision });
}

test("I14: config.get hides each secret, and keeps comments and references to variables", async () => {
  const { client } = await editing();
  const { text, hidden, exists } = await client.request("config.get", {});
  for (const secret of [...SECRETS, ...Object.values(ENV)]) expect(text).not.toContain(secret);
  expect({ hidden, exists }).toEqual({ hidden: 6, exists: true });
  for (const kept of [
    "the machine under the desk",
    '"${OTHER_KEY}"',
    '"Bearer ${TEAM_TOKEN}"',
    "https://example.com/[hidden",
  ])
    expect(text).toContain(kept);
  const checked = await client.request("config.check", { text });
  expect(checked).toMatchObject({ ok: true, errors: [] });
});

test("config.set changes only what was edited: secrets, comments and spelling stay, even after another edit", async () => {
  const { client, file } = await editing();
  const saved = await save(client, "{\n  models", "{\n  session: { queueMax: 7 },\n  models");
  expect(file.read()).toBe(FILE.replace("{\n  models", "{\n  session: { queueMax: 7 },\n  models"));
  expect(saved.changed).toContain("session");
  await save(client, "queueMax: 7", "queueMax: 8");
  expect(file.read()).toBe(FILE.replace("{\n  models", "{\n  session: { queueMax: 8 },\n  models"));
});

test("HS1: a new secret is hidden at the next read, and no other hidden value changes its digits", async () => {
  const { client } = await editing();
  const before = (await client.request("config.get", {})).text;
  const shown = /apiKey: "(\[hidden \w+\])"/.exec(before)?.[1] ?? "";
  await save(client, shown, "sk-proj-a-new-key-9876543210abcdefXYZ");
  const after = (await client.request("config.get", {})).text;
  expect(after).not.toContain("a-new-key");
  expect(after.replace(/apiKey: "\[hidden \w+\]"/, `apiKey: "${shown}"`)).toBe(before);
});

test("HS2: a hidden secret can't be shown by putting it under another key, and an unknown one is refused", async () => {
  const { client, file } = await editing();
  const { text, revision } = await client.request("config.get", {});
  const shown = /apiKey: "(\[hidden \w+\])"/.exec(text)?.[1] ?? "";
  const moved = text.replace('id: "m"', `id: "m", name: "${shown}"`);
  const unknown = text.replace(shown, "[hidden 0000000000]");
  for (const [wrong, words] of [
    [moved, "belongs to another key apiKey"],
    [unknown, "stands for no secret in the file"],
  ] as const) {
    const { ok, errors } = await client.request("config.check", { text: wrong });
    expect({ ok, errors: errors.join() }).toEqual({
      ok: false,
      errors: expect.stringMatching(`^line 6: .*${words}`),
    });
    await expect(client.request("config.set", { text: wrong, revision })).rejects.toMatchObject({
      reason: "invalid_config",
    });
  }
  expect(file.read()).toBe(FILE);
});

test("I14: problems and warnings about an edited text show no hidden secret", async () => {
  const { client } = await editing();
  const { text, revision } = await client.request("config.get", {});
  const wrong = text.replace("https://example.com/", "");
  const { errors } = await client.request("config.check", { text: wrong });
  expect(errors.join()).toMatch(/got "\[hidden \w+\]"/);
  const saving = client.request("config.set", { text: wrong, revision });
  await expect(saving).rejects.toMatchObject({
    message: expect.not.stringContaining("T00"),
    reason: "invalid_config",
  });
  const { text: twice } = await client.request("config.get", {});
  expect(twice).toBe(text);
});

test("I14: an effect of an edited text shows no secret, and a secret leaves the text [hidden …] unchanged", async () => {
  const { client } = await editing(`{
    tools: { mcp: { servers: { notes: { command: "notes", env: { host: "letter-box", a: "hidden" } } } } },
    gateway: { host: "127.0.0.1" },
    hooks: { outgoing: [{ name: "h", url: "https://example.com/T0/B0", secret: "abcdefgh01234567abcdefgh", events: ["run.ended"] }] },
  }`);
  const { text } = await client.request("config.get", {});
  const shown = /host: "(\[hidden \w+\])"/.exec(text)?.[1] ?? "";
  const { reach } = await client.request("config.check", { text: text.replace("127.0.0.1", shown) });
  expect(reach?.join()).toContain(`listens on ${shown}:`);
  const { errors } = await client.request("config.check", { text: text.replace("https://example.com/", "") });
  expect(errors.join()).toMatch(/got "\[hidden \w+\]"/);
});

test("a text is not saved if the editor could not read it again", async () => {
  const { client, file } = await editing();
  const { text, revision } = await client.request("config.get", {});
  const long = `${text}// ${"é".repeat(100_000)}`;
  await expect(client.request("config.set", { text: long, revision })).rejects.toMatchObject({
    reason: "too_large",
  });
  expect(file.read()).toBe(FILE);
});

test("ED1: if two editors save, the second is refused; an invalid text is never written; a repeated save succeeds", async () => {
  const { client, file, leftovers } = await editing();
  const { text, revision } = await client.request("config.get", {});
  const mine = text.replace("// the machine", "// my machine");
  const first = await client.request("config.set", { text: mine, revision });
  const written = file.read();
  expect(written).toBe(FILE.replace("// the machine", "// my machine"));
  const theirs = client.request("config.set", {
    text: text.replace("// the machine", "// their machine"),
    revision,
  });
  await expect(theirs).rejects.toMatchObject({ code: "CONFLICT", reason: "config_changed" });
  // A save is repeated, as if the answer to the first one had been lost.
  expect(await client.request("config.set", { text: mine, revision })).toEqual({ ...first, diff: [] });
  for (const wrong of [
    "{ gatevay: {} }",
    "{ session: { queueMax: -1 } }",
    "{",
    mine.replace("local/m", "local/x"),
  ]) {
    const refused = client.request("config.set", { text: wrong, revision: first.revision });
    await expect(refused).rejects.toMatchObject({ reason: "invalid_config" });
  }
  expect(file.read()).toBe(written);
  expect(leftovers()).toEqual([]);
});

test("ED3: the file keeps its mode, owner, link, byte order mark and line ends", async () => {
  const { client, file, leftovers } = await editing(`\uFEFF${FILE.replaceAll("\n", "\r\n")}`);
  const real = join(dirname(file.path), "real.json5");
  writeFileSync(real, file.read());
  rmSync(file.path);
  symlinkSync("real.json5", file.path);
  chmodSync(real, 0o640);
  // Only the superuser may give a file away.
  const owner = process.getuid?.() === 0 ? 4321 : statSync(real).uid;
  chownSync(real, owner, statSync(real).gid);
  expect((await client.request("config.get", {})).text).not.toMatch(/[\r\uFEFF]/);
  await save(client, "under the desk", "in the cellar");
  expect(readFileSync(real, "utf8")).toBe(
    `\uFEFF${FILE.replace("under the desk", "in the cellar").replaceAll("\n", "\r\n")}`,
  );
  const { mode, uid } = statSync(real);
  expect({ mode: mode & 0o777, uid }).toEqual({ mode: 0o640, uid: owner });
  expect(leftovers()).toEqual([]);
});

test("if there is no file, config.get returns an empty configuration, and config.set creates a file only for its owner", async () => {
  const { client, file } = await editing(undefined);
  rmSync(dirname(file.path), { recursive: true });
  const { text, revision, exists } = await client.request("config.get", {});
  expect({ exists, revision }).toEqual({ exists: false, revision: "none" });
  expect(text).toMatch(/^\/\/ .*\n\{\n\}\n$/);
  await client.request("config.set", { text: text.replace("{", "{ session: { queueMax: 9 }"), revision });
  expect(file.read()).toBe(text.replace("{", "{ session: { queueMax: 9 }"));
  expect(statSync(file.path).mode & 0o777).toBe(0o600);
});

test("if the file can't be read or written, it is not changed, and the error says why", async () => {
  const { client, file } = await editing();
  const { text, revision } = await client.request("config.get", {});
  const beside = `${file.path}.parley-${process.pid}`;
  mkdirSync(beside);
  const unwritten = client.request("config.set", { text: text.replace("the desk", "a desk"), revision });
  await expect(unwritten).rejects.toMatchObject({
    reason: "file_problem",
    message: expect.stringContaining("is unchanged"),
  });
  expect(file.read()).toBe(FILE);
  rmSync(beside, { recursive: true });
  writeFileSync(file.path, Buffer.from([0x7b, 0xff, 0x7d]));
  await expect(client.request("config.get", {})).rejects.toMatchObject({ reason: "file_problem" });
  writeFileSync(file.path, `{}${" ".repeat(300_000)}`);
  await expect(client.request("config.get", {})).rejects.toMatchObject({ reason: "too_large" });
  await expect(client.request("config.set", { text: "{}", revision })).rejects.toMatchObject({
    reason: "too_large",
  });
  rmSync(file.path);
  symlinkSync("nowhere.json5", file.path);
  const dangling = client.request("config.set", { text: "{}", revision: "none" });
  await expect(dangling).rejects.toMatchObject({
    message: expect.stringContaining("link to a missing file"),
  });
});

test("HS3: an invalid file can be read and corrected, and no secret in it is shown", async () => {
  const { client, file } = await editing(FILE.replace("} },\n  agents", "},\n  agents"));
  const { text } = await client.request("config.get", {});
  for (const secret of SECRETS) expect(text).not.toContain(secret);
  await save(client, "},\n  agents", "} },\n  agents");
  expect(file.read()).toBe(FILE);
});

test("config.schema lists each setting with type, unit, default and meaning", async () => {
  const { client } = await editing();
  const { settings } = await client.request("config.schema", {});
  expect(settings).toContainEqual({
    ...{
      path: "session.queueMax",
      type: "integer 1 to 100000",
      unit: "count",
      fallback: "200",
      required: false,
    },
    meaning: "Maximum number of runs that wait for one session.",
  });
  expect(settings.find(({ path }) => path === "models.providers.<name>.models[].id")?.required).toBe(true);
});

test("before a save, the caller is warned if token, address or store change; nothing takes effect before a restart", async () => {
  const gateway = await startProcess({ config: {} });
  const client = await gateway.connect();
  const { text, revision } = await client.request("config.get", {});
  expect(text).not.toContain(gateway.token);
  const reach = async (edited: string) => (await client.request("config.check", { text: edited })).reach;
  expect(await reach(text)).toEqual([]);
  const hidden = /"token": ?"(\[hidden \w+\])"/.exec(text)?.[1] ?? "?";
  const token = text.replace(hidden, "x".repeat(30));
  expect(await reach(token)).toEqual([expect.stringContaining("The token that you use is not valid")]);
  const other = text
    .replace(/"port": ?0/, '"port": 7999')
    .replace("{", '{ store: { dir: "/tmp/elsewhere" },');
  expect(await reach(other)).toEqual([
    expect.stringContaining("127.0.0.1:7999"),
    expect.stringContaining("/tmp/elsewhere"),
  ]);
  const saved = await client.request("config.set", { text: token, revision });
  expect(saved).toMatchObject({ changed: ["gateway"], reach: [expect.stringContaining("not valid")] });
  await (await gateway.connect()).request("health", {});
  expect(JSON.stringify(saved)).not.toContain("x".repeat(30));
});
