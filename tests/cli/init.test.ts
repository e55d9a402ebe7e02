// `parley init`: the questions in a real pseudo-terminal, the flags without one, and a gateway that starts with
// the file. The model server speaks the wire format of Ollama and OpenAI.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { cleanup, temporaryFolder } from "../kit/engine/engine.ts";
import { type ModelServer, startModelServer } from "../kit/model-server/server.ts";
import { httpError } from "../kit/model-server/steps.ts";
import { startTelegram } from "../kit/platforms/telegram/server.ts";
import { addressOf, LAUNCHER, launch } from "../kit/process/fleet.ts";
import { noPty, Pty } from "../kit/pty.ts";
import { call, configFile, run, runJson } from "./kit.ts";

const ENTER = "\r";
const DOWN = "\x1b[B";
const CTRL_C = "\x03";
const KEY = "sk-right-0123456789";
const BOT_TOKEN = "123456789:AAH-not-a-real-token-of-any-bot-0";
/** Nothing listens on port 9 of this machine. */
const NO_OLLAMA = { OLLAMA_HOST: "127.0.0.1:9" };

async function models(): Promise<ModelServer> {
  const server = await startModelServer(({ headers, lastUserText }) => {
    const { authorization } = headers;
    const isKey = authorization?.startsWith("Bearer sk-") === true;
    if (isKey && authorization !== `Bearer ${KEY}`) return httpError(401, "Incorrect API key provided");
    return `You said: ${lastUserText}`;
  });
  cleanup(() => server.close());
  return server;
}

const ollamaAt = (server: ModelServer) => ({ OLLAMA_HOST: server.url.replace("http://", "") });
const openaiAt = (server: ModelServer) => [
  "--provider",
  "openai",
  "--base-url",
  `${server.url}/responses-api/v1`,
];

function open(home: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  const all = { HOME: home, PARLEY_LOG: "silent", PARLEY_LAUNCHED: "1", ...env };
  const command = [process.execPath, LAUNCHER, "init", "--no-service", ...args];
  const pty = new Pty(command, { folder: home, env: all, columns: 100, rows: 40 });
  return {
    pty,
    shows: (words: string) => expect.poll(() => pty.text()).toContain(words),
    /** Answers the question with these words. */
    async answer(words: string, ...keys: string[]) {
      await expect.poll(() => pty.text()).toContain(words);
      for (const key of keys) pty.type(key);
    },
  };
}

/** Returns the files in the folder of the configuration. */
const filesOf = (home: string): string[] => {
  const folder = dirname(configFile(home));
  return existsSync(folder) ? readdirSync(folder) : [];
};

function putFile(home: string, text = "// mine\n{}\n"): void {
  mkdirSync(dirname(configFile(home)), { recursive: true });
  writeFileSync(configFile(home), text, { mode: 0o644 });
}

// Skipped without a pseudo-terminal: only `script` of util-linux opens one.
describe.skipIf(noPty)("in a pseudo-terminal", () => {
  test("init finds a local model, tests it, and writes a file with which the gateway answers", async () => {
    const server = await models();
    const home = temporaryFolder();
    const { answer, pty, shows } = open(home, [], ollamaAt(server));
    await answer("Which model provider?", ENTER);
    await shows("Ollama (runs here, 1 models)");
    await answer("Which model?", ENTER);
    await answer("Connect a chat channel?", ENTER);
    expect(await pty.exited).toBe(0);
    await expect.poll(() => pty.text()).toContain("ollama/test-model: answered in ");
    await expect.poll(() => pty.text()).toContain(`Wrote ${configFile(home)}.`);
    expect(statSync(configFile(home)).mode & 0o777).toBe(0o600);
    const text = readFileSync(configFile(home), "utf8");
    expect(text).toContain(`baseUrl: "${server.url}/v1"`);
    expect(text).toMatch(/^\/\/ Settings of Parley/);
    expect(text).not.toContain("text-embedding");

    const gateway = launch(home, ["gateway", "--port", "0"]);
    const exited = new Promise((resolve) => gateway.once("exit", resolve));
    cleanup(async () => {
      gateway.kill("SIGKILL");
      await exited;
    });
    const url = (await addressOf(gateway)).replace("http", "ws");
    expect((await run(home, ["--url", url, "run", "hello"])).out).toContain("You said: hello");
  });

  test("a wrong key is reported and asked for again; only a typed key is in the file", async () => {
    const server = await models();
    const home = temporaryFolder();
    const env = { ...NO_OLLAMA, OPENAI_API_KEY: "sk-wrong-0123456789" };
    const { answer, pty } = open(home, [...openaiAt(server), "--channel", "none"], env);
    await answer("Which model?", ENTER);
    await answer("Incorrect API key provided");
    await answer("The test failed. What now?", ENTER);
    await answer("The key (or ${NAME} of an environment variable)", KEY, ENTER);
    expect(await pty.exited).toBe(0);
    const text = readFileSync(configFile(home), "utf8");
    expect(text).toContain(`apiKey: "${KEY}"`);
    expect(text).toContain('model: "openai/gpt-6-sol"');
    expect(pty.text()).not.toContain(KEY);
    expect(pty.text()).not.toContain(env.OPENAI_API_KEY);
    expect((await run(home, ["config", "check"])).code).toBe(0);
  });

  test("without any key and local model, init says so and begins with the offline model", async () => {
    const home = temporaryFolder();
    const { answer, pty } = open(home, ["--channel", "none"], NO_OLLAMA);
    await answer("No model was found");
    // The last line of the list.
    await answer("Which model provider?", "\x1b[A", ENTER);
    expect(await pty.exited).toBe(0);
    expect(readFileSync(configFile(home), "utf8")).toContain('model: "offline/rehearsal"');
  });

  test("an existing file stays if the user declines, and keeps a copy if the user agrees", async () => {
    const home = temporaryFolder();
    putFile(home);
    const args = ["--provider", "offline", "--channel", "none"];
    const declined = open(home, args, NO_OLLAMA);
    await declined.answer("Replace it (a copy is kept)?", "n");
    expect(await declined.pty.exited).toBe(1);
    expect(filesOf(home)).toEqual(["parley.json5"]);
    expect(readFileSync(configFile(home), "utf8")).toBe("// mine\n{}\n");
    const agreed = open(home, args, NO_OLLAMA);
    await agreed.answer("Replace it (a copy is kept)?", "y");
    expect(await agreed.pty.exited).toBe(0);
    expect(readFileSync(`${configFile(home)}.old`, "utf8")).toBe("// mine\n{}\n");
    expect(readFileSync(configFile(home), "utf8")).toContain("offline/rehearsal");
    expect(statSync(configFile(home)).mode & 0o777).toBe(0o600);
  });

  test.each([
    ["provider", []],
    ["key", [["Which model provider?", DOWN, ENTER]]],
    ["model", [["Which model provider?", ENTER]]],
    [
      "channel",
      [
        ["Which model provider?", ENTER],
        ["Which model?", ENTER],
      ],
    ],
    [
      "token",
      [
        ["Which model provider?", ENTER],
        ["Which model?", ENTER],
        ["Connect a chat channel?", DOWN, ENTER],
      ],
    ],
  ])("Ctrl-C at the question about the %s writes nothing", async (name, steps) => {
    const server = await models();
    const home = temporaryFolder();
    const { answer, pty } = open(home, [], ollamaAt(server));
    for (const [words = "", ...keys] of steps) await answer(words, ...keys);
    const QUESTIONS: Readonly<Record<string, string>> = {
      provider: "Which model provider?",
      key: "The key (or",
      model: "Which model?",
      channel: "Connect a chat channel?",
      token: "The bot's token",
    };
    await answer(QUESTIONS[name] ?? "", CTRL_C);
    expect(await pty.exited).toBe(1);
    await expect.poll(() => pty.text()).toContain("nothing was written");
    expect(filesOf(home)).toEqual([]);
  });
});

test("without a terminal, init names every missing flag and what it found", async () => {
  const home = temporaryFolder();
  putFile(home);
  const { code, err } = await run(home, ["init"], { env: { ...NO_OLLAMA, OPENAI_API_KEY: KEY } });
  expect(code).toBe(2);
  expect(err).toMatch(
    /no terminal to ask in; add --provider <name> \(found: openai.*\), and --yes, to replace/,
  );
  const nothing = await run(home, ["init", "--yes"], { env: NO_OLLAMA });
  expect(nothing.code).toBe(2);
  expect(nothing.err).toContain("no key in the environment, no local server");
  expect(filesOf(home)).toEqual(["parley.json5"]);
});

test.each([
  [["--provider", "openal"], /unknown provider "openal"; providers: /],
  [["--provider", "openai"], /the key is missing: set OPENAI_API_KEY, or add --key-env NAME/],
  [["--provider", "openai", "--key-env", "MY_KEY"], /the environment variable "MY_KEY" is not set/],
  [["--provider", "server"], /the address is missing: add --base-url <url>/],
  [["--provider", "server", "--base-url", "127.0.0.1"], /An address looks like/],
  [["--provider", "ollama"], /lists no models: start it, or add --model <id>/],
  [["--provider", "offline", "--channel", "fax"], /unknown channel "fax"/],
])("init %j is a usage error and writes nothing", async (args, words) => {
  const home = temporaryFolder();
  const refused = await run(home, ["init", ...args], { env: NO_OLLAMA });
  expect(refused.code).toBe(2);
  expect(refused.err).toMatch(words);
  expect(filesOf(home)).toEqual([]);
});

test("with flags only, init refers to the variable of the key, and a wrong key writes nothing", async () => {
  const server = await models();
  const home = temporaryFolder();
  const args = ["init", ...openaiAt(server), "--key-env", "MY_KEY", "--model", "gpt-next"];
  const wrong = await run(home, args, { env: { ...NO_OLLAMA, MY_KEY: "sk-wrong-0123456789" } });
  expect(wrong).toMatchObject({ code: 1, err: expect.stringContaining("Incorrect API key provided") });
  expect(wrong.err).toContain("Nothing was written. To skip this test, add --no-test.");
  expect(filesOf(home)).toEqual([]);
  const env = { ...NO_OLLAMA, MY_KEY: KEY };
  expect(await run(home, args, { env })).toMatchObject({ code: 0 });
  const text = readFileSync(configFile(home), "utf8");
  expect(text).toContain('apiKey: "$' + '{MY_KEY}"');
  expect(text).not.toContain(KEY);
  expect((await run(home, ["config", "check"], { env })).out).toContain("gpt-next");
  expect(server.requests.at(-1)?.model).toBe("gpt-next");
});

test("--yes uses the first model that was found, and keeps a copy of each earlier file", async () => {
  const server = await models();
  const home = temporaryFolder();
  for (const _ of [1, 2, 3])
    expect((await run(home, ["init", "--yes"], { env: ollamaAt(server) })).code).toBe(0);
  expect(filesOf(home).toSorted()).toEqual(["parley.json5", "parley.json5.old", "parley.json5.old-2"]);
  const report = await runJson(temporaryFolder(), ["init", "--provider", "offline"]);
  expect(report).toMatchObject({ ok: true, model: "offline/rehearsal", tested: false, service: false });
});

test("a channel is tested by one call and added to the file; a wrong token writes nothing", async () => {
  const platform = await startTelegram();
  platform.addBot(BOT_TOKEN, "parley_test_bot");
  cleanup(() => platform.close());
  const home = temporaryFolder();
  const args = ["init", "--provider", "offline", "--channel", "telegram", "--set", `apiRoot=${platform.url}`];
  const wrong = await run(home, [...args, "botToken=123456789:AAH-some-other-token-of-nobody"]);
  expect(wrong.code).toBe(1);
  expect(filesOf(home)).toEqual([]);
  const missing = await run(home, args);
  expect(missing.err).toContain("add --set botToken=…");
  const added = await run(home, [...args, `botToken=${BOT_TOKEN}`]);
  expect(added).toMatchObject({ code: 0, err: expect.stringContaining("parley_test_bot") });
  expect(added.out).toContain("npx parley-gateway channels pair approve CODE");
  expect((await run(home, ["config", "check"])).code).toBe(0);
  expect(readFileSync(configFile(home), "utf8")).toMatch(/^\/\/ Settings of Parley.*botToken: "123/s);
});

test("in a terminal, a wrong token of a channel is asked for again, or the file has no channel", async () => {
  const platform = await startTelegram();
  platform.addBot(BOT_TOKEN, "parley_test_bot");
  cleanup(() => platform.close());
  const wrong = "123456789:AAH-some-other-token-of-nobody";
  const flags = ["--provider", "offline", "--no-service", "--channel", "telegram"];
  const args = ["init", ...flags, "--set", `apiRoot=${platform.url}`, `botToken=${wrong}`];
  const home = temporaryFolder();
  const again = call(home, args, { isTTY: true });
  await again.shows("The test failed. What now?");
  again.stdin.write(ENTER);
  await again.shows("The bot's token");
  again.stdin.write(`${BOT_TOKEN}\r`);
  expect(await again.code).toBe(0);
  expect(readFileSync(configFile(home), "utf8")).toContain(BOT_TOKEN);
  const without = temporaryFolder();
  const left = call(without, args, { isTTY: true });
  await left.shows("The test failed. What now?");
  left.stdin.write(`${DOWN}${DOWN}${ENTER}`);
  expect(await left.code).toBe(0);
  expect(readFileSync(configFile(without), "utf8")).not.toContain("channels:");
});

test("--service installs the service and copies the variables of the file to its own, once", async () => {
  const home = temporaryFolder();
  const bin = join(home, "bin");
  mkdirSync(bin);
  for (const name of ["systemctl", "loginctl"]) {
    writeFileSync(join(bin, name), "#!/bin/sh\n");
    chmodSync(join(bin, name), 0o755);
  }
  const env = { ...NO_OLLAMA, PATH: `${bin}:/usr/bin:/bin`, OPENAI_API_KEY: KEY, GEMINI_API_KEY: "other" };
  const machine = { platform: "linux" };
  const args = ["init", "--provider", "openai", "--no-test", "--service", "--yes"];
  const refused = await run(home, args, { env, machine: { ...machine, userId: 0 } });
  expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("you are root") });
  expect(filesOf(home)).toEqual([]);
  const keys = join(home, ".parley/service.env");
  for (const _ of [1, 2]) {
    const done = await run(home, args, { env, machine });
    expect(done).toMatchObject({ code: 0 });
    expect(done.err).toContain("Set in this shell, but not so for the service: GEMINI_API_KEY.");
    expect(readFileSync(keys, "utf8").match(/^OPENAI_API_KEY=.*$/gm)).toEqual([`OPENAI_API_KEY=${KEY}`]);
  }
  expect(statSync(keys).mode & 0o777).toBe(0o600);
  expect(existsSync(join(home, ".config/systemd/user/parley.service"))).toBe(true);
});
