// `parley node`: this machine as a node, and operators' commands to nodes, with a real gateway.

import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { showOnDesktop } from "../../../src/cli/desktop.ts";
import { type Machine, nodeCommands, type Wanted } from "../../../src/features/nodes/program/commands.ts";
import { nodeIdentity } from "../../../src/features/nodes/program/identity.ts";
import { runProgram } from "../../../src/main.ts";
import {
  type Call,
  type CallOptions,
  call,
  makeHome,
  run,
  runJson,
  startGateway,
  TOKEN,
} from "../../cli/kit.ts";
import { cleanup, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { PATIENCE_MS } from "../../kit/until.ts";

const NODE_TOKEN = "a-token-of-the-nodes-only";
const tokens = [{ token: NODE_TOKEN, role: "node" }];

async function gatewayHome(): Promise<{ home: string; url: string }> {
  const { home, port } = await makeHome({});
  const file = join(home, ".parley", "parley.json5");
  const config = JSON.parse(readFileSync(file, "utf8"));
  config.gateway.auth.tokens = tokens;
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  return { home, url: `ws://127.0.0.1:${port}` };
}

interface RunningNode extends Call {
  readonly home: string;
  /** Resolves when standard error contains this text. */
  said(words: RegExp): Promise<void>;
}

function node(
  url: string,
  args: readonly string[] = [],
  options: CallOptions = {},
  home = temporaryFolder(),
): RunningNode {
  const words = ["--url", url, "node", "run", "--name", "attic", ...args];
  const started = call(home, words, { env: { PARLEY_TOKEN: NODE_TOKEN }, ...options });
  cleanup(async () => {
    started.interrupt("SIGTERM");
    await started.code;
  });
  const said = (wanted: RegExp) => expect.poll(() => started.err()).toMatch(wanted);
  return { ...started, home, said: async (wanted) => void (await said(wanted)) };
}

const codeOf = (one: Call): string => /npx parley-gateway node approve (\S{9})/.exec(one.err())?.[1] ?? "";

test("a node can be paired, listed, invoked, renamed and unpaired", async () => {
  const { home, url } = await gatewayHome();
  await startGateway(home);
  expect((await run(home, ["node"])).out).toContain("No nodes are paired");
  expect((await run(home, ["node", "pending"])).out).toContain("No pending pairing requests");
  const one = node(url, ["--allow-exec", "echo *"]);
  await one.said(/is not paired yet/);
  const code = codeOf(one);
  expect((await run(home, ["node"])).err).toContain(
    "1 pairing request waiting: npx parley-gateway node pending",
  );
  expect((await run(home, ["node", "pending"])).out).toMatch(
    new RegExp(`${code} +attic +\\S+ +\\S+ +exec notify`),
  );
  const paired = await run(home, ["node", "approve", code, "--agent", "research", "--name", "loft"]);
  expect(paired.out).toMatch(/^loft \([0-9a-f]{12}\) is paired\.\n$/);
  await one.said(/Connected to ws:/);
  expect((await run(home, ["node"])).out).toMatch(/loft +\S+ +connected +exec notify +research/);
  const asked = await run(home, ["node", "invoke", "LOFT", "exec", '{"command": ["echo", "a\\u001b[2Jb"]}']);
  expect(asked).toMatchObject({ code: 0, out: expect.stringContaining('"exitCode": 0') });
  expect(asked.out).not.toContain("\u001b");
  const refused = await run(home, ["node", "invoke", "loft", "exec", '{"command": ["rm", "-rf", "/"]}']);
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('it runs: "echo *"') });
  expect((await run(home, ["node", "describe", "loft"])).out).toMatch(/allowed {7}exec, notify/);
  const id = String((await runJson(home, ["node", "describe", "loft"])).nodeId);
  expect((await run(home, ["node", "rename", id.slice(0, 8), "den"])).out).toBe("Renamed to den.\n");
  expect((await run(home, ["node", "remove", "den"])).out).toContain(`Its session node-${id} was kept`);
  await one.said(/not paired any more|is not paired yet[\s\S]*is not paired yet/);
  one.interrupt();
  expect(await one.code).toBe(0);
  expect((await run(home, ["node", "describe", "den"])).err).toContain(
    'no paired node has the name or id "den"',
  );
});

test("a rejected device may request again; a code is valid once; a node reconnects after a restart", async () => {
  const { home, url } = await gatewayHome();
  const first = await startGateway(home);
  const one = node(url);
  await one.said(/is not paired yet/);
  const code = codeOf(one);
  expect((await run(home, ["node", "reject", code])).out).toBe(`Request ${code} is rejected.\n`);
  expect((await run(home, ["node", "approve", code])).err).toContain("there is no pairing request");
  await expect
    .poll(() => [...one.err().matchAll(/approve (\S{9})/g)].map(([, each]) => each))
    .toHaveLength(2);
  const again = [...one.err().matchAll(/approve (\S{9})/g)].at(-1)?.[1] ?? "";
  await run(home, ["node", "approve", again]);
  await one.said(/Connected to/);
  await first.stop();
  await one.said(/reconnecting/);
  await startGateway(home);
  await one.said(/Reconnected/);
  const shown = await run(home, ["node", "invoke", "attic", "notify", '{"body": "hello \\u202e there"}']);
  expect(shown.out).toContain('"terminal"');
  await one.said(/Parley: hello \\u\{202e\} there/);
});

test("if two programs use the same key, the first one reports that it was replaced, and exits", async () => {
  const { home, url } = await gatewayHome();
  await startGateway(home);
  const one = node(url);
  await one.said(/is not paired yet/);
  await run(home, ["node", "approve", codeOf(one)]);
  await one.said(/Connected to/);
  const two = node(url, [], {}, one.home);
  await two.said(/Connected to/);
  expect(await one.code).toBe(1);
  expect(one.err()).toContain("The gateway disconnected this program");
  expect(one.err()).toContain("--key FILE");
});

test("a node exits on errors that a retry cannot fix, and retries after all other errors", async () => {
  const { home, url } = await gatewayHome();
  const early = node(url);
  await early.said(/no gateway at .*Retrying/);
  await startGateway(home);
  await early.said(/is not paired yet/);
  const wrong = node(url, [], { env: { PARLEY_TOKEN: "not-a-token-of-it" } });
  expect(await wrong.code).toBe(1);
  expect(wrong.err()).toContain("the token is not valid");
  expect(wrong.err()).not.toContain("not-a-token-of-it");
  for (const pattern of ["*", "", "./run", "/* *"]) {
    const refused = await run(temporaryFolder(), [
      "--url",
      url,
      "--token",
      TOKEN,
      "node",
      "run",
      "--allow-exec",
      pattern,
    ]);
    expect({ pattern, ...refused }).toMatchObject({
      pattern,
      code: 2,
      err: expect.stringContaining("--allow-exec"),
    });
  }
  const usage = await run(home, ["node", "invoke", "attic", "exec", "{"]);
  expect(usage).toMatchObject({ code: 2, err: expect.stringContaining("must be JSON") });
});

test("NI1, NI2: the key is created once, readable by its owner only; an invalid key file is refused and not changed", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "new", "node.json");
  const [made, known] = [await nodeIdentity(file), await nodeIdentity(file)];
  if (!made.ok || !known.ok) throw new Error("no key");
  expect(known.value.id).toBe(made.value.id);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, "new")).mode & 0o777).toBe(0o700);
  chmodSync(file, 0o644);
  expect(await nodeIdentity(file)).toMatchObject({ ok: false, hint: `chmod 600 ${file}` });
  for (const text of [
    "",
    "{}",
    "null",
    '{"privateKey": 7}',
    '{"privateKey": "-----BEGIN PRIVATE KEY-----\\nsecret"}',
  ]) {
    const bad = join(folder, "bad.json");
    writeFileSync(bad, text, { mode: 0o600 });
    const refused = await nodeIdentity(bad);
    expect(refused).toMatchObject({
      ok: false,
      error: expect.stringContaining("does not contain a valid node key"),
    });
    expect(JSON.stringify(refused)).not.toContain("secret");
    expect(readFileSync(bad, "utf8")).toBe(text);
  }
  expect(await nodeIdentity(join("/proc", "node.json"))).toMatchObject({ ok: false });
});

function machine(cwd: string, more: Partial<Machine> = {}): Machine & { readonly lines: string[] } {
  const world = quietWorld();
  const lines: string[] = [];
  return {
    parts: {
      world,
      env: { PATH: process.env.PATH, SECRET: "x" },
      home: cwd,
      runProgram: (one) => runProgram(one, world),
    },
    allowExec: ["*cat *", "bash *", "no-such-program *"],
    cwd,
    platform: "linux",
    show: (text) => lines.push(text),
    lines,
    ...more,
  };
}

const wanted = (params: unknown, more: Partial<Wanted> = {}): Wanted => ({
  ...{ params, timeoutMs: PATIENCE_MS, signal: new AbortController().signal },
  ...more,
});

test("NX1: invalid params, folders outside the allowed one and missing programs are refused with a reason", async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "in"));
  symlinkSync("/", join(folder, "out"));
  const { exec } = nodeCommands(machine(join(folder, "in")));
  const wrong: [unknown, string][] = [
    [null, "INVALID_REQUEST"],
    ["cat x", "INVALID_REQUEST"],
    [{ command: "cat x" }, "INVALID_REQUEST"],
    [{ command: [] }, "INVALID_REQUEST"],
    [{ command: ["cat", 7] }, "INVALID_REQUEST"],
    [{ command: ["cat", "a\0b"] }, "INVALID_REQUEST"],
    [{ command: ["cat", "x"], env: { PATH: "/tmp" } }, "INVALID_REQUEST"],
    [{ command: ["cat", "x"], timeoutMs: -1 }, "INVALID_REQUEST"],
    [{ command: ["cat", ...Array.from({ length: 300 }, () => "x")] }, "INVALID_REQUEST"],
    [{ command: ["cat", "x".repeat(200_000)] }, "INVALID_REQUEST"],
    [{ command: ["cat", "x"], cwd: ".." }, "NOT_ALLOWED"],
    [{ command: ["cat", "x"], cwd: "../out" }, "NOT_ALLOWED"],
    [{ command: ["cat", "x"], cwd: "/" }, "NOT_ALLOWED"],
    [{ command: ["cat", "x"], cwd: "nowhere" }, "NOT_ALLOWED"],
    [{ command: ["sh", "-c", "id"] }, "NOT_ALLOWED"],
    [{ command: ["./cat", "x"] }, "NOT_ALLOWED"],
    [{ command: ["no-such-program", "x"] }, "EXEC_FAILED"],
  ];
  for (const [params, code] of wrong) {
    const outcome = await exec?.(wanted(params));
    expect({ params, outcome }).toMatchObject({ outcome: { ok: false, error: { code } } });
  }
});

test("NX1: output is limited, the environment is minimal, and a cancelled program is stopped", async () => {
  const folder = temporaryFolder();
  const { exec } = nodeCommands(machine(folder));
  const loud = await exec?.(
    wanted({ command: ["bash", "-c", "yes | head -c 1000000; echo oops >&2; exit 3"] }),
  );
  expect(loud).toMatchObject({
    ok: true,
    payload: { exitCode: 3, stdoutBytes: 1_000_000, truncated: true, stderr: "oops\n" },
  });
  expect(JSON.stringify(loud).length).toBeLessThan(200_000);
  const bare = await exec?.(wanted({ command: ["bash", "-c", "env | cut -d= -f1 | sort | tr '\\n' ' '"] }));
  expect(bare).toMatchObject({ payload: { stdout: expect.not.stringContaining("SECRET") } });
  const control = new AbortController();
  const going = exec?.(
    wanted({ command: ["bash", "-c", "setsid sleep 600 & wait"] }, { signal: control.signal }),
  );
  control.abort();
  expect(await going).toMatchObject({ ok: true, payload: { ended: "aborted", timedOut: false } });
  // Makes nine calls at once. None of them ends before the ninth was refused.
  const waits = ["bash", "-c", "until [ -e go ]; do sleep 0.05; done"];
  const nine = Array.from({ length: 9 }, async () => exec?.(wanted({ command: waits })));
  expect(await Promise.race(nine)).toMatchObject({ ok: false, error: { code: "BUSY" } });
  writeFileSync(join(folder, "go"), "");
  expect((await Promise.all(nine)).filter((end) => end?.ok === true)).toHaveLength(8);
});

test("without --allow-exec a node runs no programs; without a desktop it prints notices in the terminal", async () => {
  const one = machine(temporaryFolder(), { allowExec: [] });
  const commands = nodeCommands(one);
  expect(Object.keys(commands)).toEqual(["notify"]);
  expect(await commands.notify?.(wanted({ title: "a\nb\u001b[2J", body: " hello\u0007 " }))).toEqual({
    ok: true,
    payload: { shown: "terminal" },
  });
  expect(one.lines).toEqual(["a b\\x1b[2J: hello\\x07"]);
  for (const params of [null, {}, { body: "" }, { body: 7 }]) {
    expect(await commands.notify?.(wanted(params))).toMatchObject({ ok: false });
  }
  const argvs: (readonly string[])[] = [];
  const desktop = (exitCode: number, platform: string): Machine => {
    const parts: Machine["parts"] = {
      ...one.parts,
      env: { DISPLAY: ":0" },
      runProgram: async ({ argv }) => {
        argvs.push(argv);
        const end = {
          ending: "ended",
          signal: null,
          stdout: "",
          stdoutBytes: 0,
          truncated: false,
          stderr: "",
        };
        return { ...end, exitCode };
      },
    };
    return { ...one, parts, platform };
  };
  const notice = wanted({ title: "--help", body: "-x" });
  const shown = async (exitCode: number, platform: string) =>
    nodeCommands(desktop(exitCode, platform)).notify?.(notice);
  expect(await shown(0, "linux")).toMatchObject({ payload: { shown: "desktop" } });
  expect(await shown(1, "linux")).toMatchObject({ payload: { shown: "terminal" } });
  expect(await shown(0, "darwin")).toMatchObject({ payload: { shown: "desktop" } });
  expect(argvs[0]).toEqual(["notify-send", "--app-name=Parley", "--", "--help", "-x"]);
  expect(argvs[2]?.slice(-2)).toEqual([" --help", "-x"]);
});

test("the program that shows notifications is never taken from a relative folder in PATH", async () => {
  const paths: (string | undefined)[] = [];
  const show: Machine["parts"]["runProgram"] = async ({ env }) => {
    paths.push(env.PATH);
    return {
      ending: "ended",
      exitCode: 0,
      signal: null,
      stdout: "",
      stdoutBytes: 0,
      truncated: false,
      stderr: "",
    };
  };
  const parts = { env: { DISPLAY: ":0", PATH: ".:node_modules/.bin:/usr/bin" }, home: "/", runProgram: show };
  const notice = { parts, platform: "linux", cwd: "/", title: "Parley", body: "A message waits." };
  expect(await showOnDesktop(notice, new AbortController().signal)).toBe(true);
  expect(paths).toEqual(["/usr/bin"]);
});
