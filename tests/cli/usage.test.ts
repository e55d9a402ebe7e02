import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { reachableHost, socketUrl } from "../../src/cli/address.ts";
import { meanings } from "../../src/cli/suggest.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { commands, program } from "../kit/reference/command-line.ts";
import { configFile, makeHome, run, runJson, startGateway } from "./kit.ts";

test.each([
  [["foo"], 'unknown command "foo"'],
  [["sessions", "histroy"], 'unknown command "histroy". Did you mean "history"?'],
  [["demoo"], 'Did you mean "demo"?'],
  [["send", "hello"], "no recipient: give --session <session>"],
  [["send", "--session", "main"], "missing required argument 'message'"],
  [["send", "--session", "main", "--wait", "soon", "x"], '--wait must be a number of at least 0, got "soon"'],
  [["gateway", "--port", "99999"], "--port must be a number from 0 to 65535"],
  [["gateway", "--port", ""], "--port must be a number"],
  [["send", "--channel", "telegram", "--to", "1", "--new", "x"], "--new cannot be used with --channel"],
  [["chat", "--frobnicate"], "unknown option '--frobnicate'"],
  [["sessions", "list", "history", "main"], "too many arguments"],
  [["sessions", "list", "--limit", "0"], "--limit must be a number of at least 1"],
  [["sessions", "history"], "missing required argument 'session'"],
  [["deliveries", "list", "--state", "lost"], "Allowed choices are pending, sent, failed, skipped"],
  [["join", "claude"], 'Did you mean "claude-code"?'],
  [["cron", "add", "hi", "--in", "0s"], "--in must be more than 0s"],
  [["cron", "add", "hi", "--every", "3s"], '--every must be at least 10s, got "3s"'],
  [["cron", "add", "", "--every", "15m"], "the message of the job is empty"],
  [["tool", "sessions_list", "{"], "the arguments must be JSON"],
  [["tool", "sessions_list", "[]"], "the arguments must be a JSON object"],
  [["call", "health", "7"], "the parameters must be a JSON object"],
  [["config"], "Usage: parley config"],
])("the arguments %j are a usage error: exit code 2 and a reason", async (argv, words) => {
  const { code, out, err } = await run(temporaryFolder(), argv);
  expect(code).toBe(2);
  expect(out).toBe("");
  expect(err).toContain(words);
});

test.each([
  ["stop", "sessions stop"],
  ["kill", "sessions stop"],
  ["LS", "sessions list"],
  ["tail", "logs"],
  ["login", "link"],
  ["start", "gateway"],
  ["cancle", "sessions stop"],
  ["sesions", "sessions"],
  ["sessions cancel", "stop"],
  ["sessions ls", "list"],
  ["cron delete", "remove"],
  ["tokens rm", "revoke"],
])('"parley %s" suggests "%s"', async (typed, meant) => {
  const { code, err } = await run(temporaryFolder(), typed.split(" "));
  expect([code, err.split("\n")[0]]).toEqual([2, expect.stringContaining(`Did you mean "${meant}"?`)]);
});

const INIT = ["init", "--provider", "offline", "--no-service", "--channel", "none", "--yes"];

test("init and join in a place that cannot be written are refused with the place and the reason", async () => {
  // A file is where a folder should be, because the tests may run as a user who may write everywhere.
  const folder = temporaryFolder();
  for (const name of ["file", ".claude"]) writeFileSync(join(folder, name), "");
  const made = await run(join(folder, "file", "home"), INIT, { folder });
  expect(made).toMatchObject({ code: 1, err: expect.stringContaining("a part of the path is no folder") });
  const { home } = await makeHome();
  const joined = await run(home, ["join", "claude-code", "--yes"], { folder });
  expect(joined).toMatchObject({ code: 1, err: expect.stringContaining(join(folder, ".claude")) });
  for (const { err } of [made, joined]) expect(err).not.toMatch(/because of a bug|ENOTDIR|EEXIST/);
});

test("a word that is like no command and means none gets no suggestion, and a very long one is read quickly", async () => {
  for (const word of ["zzz", "qqqqqqqq", "xyz ".repeat(20_000)])
    expect((await run(temporaryFolder(), [word])).err).not.toContain("Did you mean");
});

test("each suggested command exists, and no command is also a word with another meaning", async () => {
  const help = (await run(temporaryFolder(), ["--help"])).out;
  const commands = [...help.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name = ""]) => name);
  for (const [word, command] of meanings()) {
    expect(commands).not.toContain(word);
    if (command === "--version") continue;
    const { code, out } = await run(temporaryFolder(), [...command.split(" "), "--help"]);
    expect([command, code]).toEqual([command, 0]);
    expect(out).toContain(`Usage: parley ${command}`);
  }
});

test("help exits with code 0", async () => {
  for (const argv of [["--help"], ["help"], ["help", "send"], ["sessions", "--help"], ["send", "-h"]]) {
    const { code, out } = await run(temporaryFolder(), argv);
    expect(code).toBe(0);
    expect(out).toContain("Usage: parley");
  }
});

test("a usage error with --json prints one JSON document, wherever the option is", async () => {
  for (const argv of [
    ["--json", "foo"],
    ["send", "x", "--json"],
  ]) {
    const { code, out } = await run(temporaryFolder(), argv);
    expect(code).toBe(2);
    expect(JSON.parse(out)).toMatchObject({ ok: false, error: { code: "usage" } });
  }
});

test("if no gateway runs, the exit code is 3 and the error says how to start one", async () => {
  const { home } = await makeHome();
  for (const argv of [
    ["agents"],
    ["sessions"],
    ["send", "--session", "main", "x"],
    ["chat"],
    ["deliveries"],
  ]) {
    const { code, out, err } = await run(home, argv);
    expect({ argv, code, out }).toEqual({ argv, code: 3, out: "" });
    expect(err).toContain("npx parley-gateway gateway");
  }
  expect(await runJson(home, ["agents"])).toMatchObject({ ok: false, error: { code: "UNREACHABLE" } });
});

test("with --url and --token the configuration is not read", async () => {
  const port = await freePort();
  const argv = ["--url", `http://127.0.0.1:${port}`, "--token", "x", "--config", "/no/such/file", "agents"];
  const { code, err } = await run(temporaryFolder(), argv);
  expect(code).toBe(3);
  expect(err).toContain(`ws://127.0.0.1:${port} `);
});

test("while the file has problems, commands reach the running gateway and say so", async () => {
  const { home } = await makeHome();
  const gateway = await startGateway(home);
  const file = configFile(home);
  const good = readFileSync(file, "utf8");
  const warning = `warning: ${file} has problems: npx parley-gateway config check. The running gateway keeps its settings.`;
  for (const extra of [
    { gatewayy: {} },
    { models: { providers: { openai: { apiKey: `\${UNSET_HERE}` } } } },
  ]) {
    writeFileSync(file, JSON.stringify({ ...JSON.parse(good), ...extra }));
    for (const argv of [["status"], ["sessions", "list"], ["run", "hello"]]) {
      const { code, out, err } = await run(home, argv);
      expect({ argv, code, isEmpty: out === "" }).toEqual({ argv, code: 0, isEmpty: false });
      expect(err).toContain(warning);
    }
  }
  await gateway.stop();
  const { code, err } = await run(home, ["status"]);
  expect(code).toBe(1);
  expect(err).toContain("UNSET_HERE");
  expect(err).not.toContain("warning");
});

test("a named file that cannot be read in full never leads to the gateway of the usual file", async () => {
  const { home, port } = await makeHome();
  await startGateway(home);
  for (const text of ["{ gateway: ", `{ gateway: { port: ${port}, auth: { token: "\${UNSET_HERE}" } } }`]) {
    const named = join(home, "other.json5");
    writeFileSync(named, text);
    const { code, err } = await run(home, ["--config", named, "status"]);
    expect(code).toBe(1);
    expect(err).toContain("other.json5");
    expect(err).not.toContain("warning");
  }
});

test.each([
  ["127.0.0.1:7275", "ws://127.0.0.1:7275"],
  ["localhost:7275", "ws://localhost:7275"],
  ["http://host.example/parley/", "ws://host.example/parley"],
  ["https://host.example", "wss://host.example"],
  ["wss://host.example:1", "wss://host.example:1"],
])("--url %s means %s", (text, url) => {
  expect(socketUrl(text)).toEqual({ ok: true, value: url });
});

test.each(["", "ftp://host", "ws://", "::::"])(
  "the invalid address --url %j is refused, and the error shows an example",
  (text) => {
    expect(socketUrl(text)).toMatchObject({
      ok: false,
      error: expect.stringContaining("ws://127.0.0.1:7275"),
    });
  },
);

test("a gateway that listens on all interfaces is shown with a loopback address", () => {
  expect(["0.0.0.0", "::", "::1", "10.0.0.1"].map(reachableHost)).toEqual([
    "127.0.0.1",
    "[::1]",
    "[::1]",
    "10.0.0.1",
  ]);
});

test("RN2: an invalid address is a usage error in each command", async () => {
  for (const command of [["agents"], ["mcp"], ["link"], ["doctor"]]) {
    const { code, out, err } = await run(temporaryFolder(), ["--url", "ftp://host", ...command]);
    expect({ command, code, out }).toEqual({ command, code: 2, out: "" });
    expect(err).toContain("--url must be like");
  }
});

test("no command has an option with the name of one that every command takes", () => {
  const names = (command: Command) => command.options.flatMap(({ long }) => long ?? []);
  const global = names(program());
  expect(global).toContain("--url");
  const doubles = commands().flatMap(({ path, command }) =>
    names(command).flatMap((name) => (global.includes(name) ? `${path} ${name}` : [])),
  );
  expect(doubles).toEqual([]);
});
