// The package as a user gets it: built, packed, installed into an empty folder, and used. Checks its size,
// the command, the client in Node and in browsers, the types, and the programs in docs/CLIENT.md.

import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { createContext, Script } from "node:vm";
import { build } from "tsdown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { lacks } from "../kit/process/lacks.ts";
import { whyNot } from "../sandbox/kit.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MODULES = join(ROOT, "node_modules");
/**
 * Size limit of the package: the program with its bundled libraries, the web page, and the documents with
 * their pictures.
 */
const PACKED_MAX_BYTES = 7 * 1024 * 1024;
const TOKEN = "a-token-that-is-for-tests";

const run = promisify(execFile);
/** Returns an environment without the developer's own Parley and model keys. */
const environment = (home: string) => ({
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
  HOME: home,
});

let home: string;
let app: string;
let gateway: ChildProcess;
let url: string;

/** Copies the checkout, because packing rebuilds `dist`, whose web page is also used by other tests. */
function copyOfCheckout(folder: string): string {
  const checkout = join(folder, "checkout");
  mkdirSync(checkout);
  const texts = ["CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"];
  for (const name of ["bin", "docs", "src", "ui", ...texts])
    cpSync(join(ROOT, name), join(checkout, name), { recursive: true });
  const settings = ["tsconfig.json", "tsconfig.types.json", "tsdown.config.ts"];
  for (const name of ["build.js", "package.json", "package-lock.json", ...settings])
    cpSync(join(ROOT, name), join(checkout, name));
  symlinkSync(MODULES, join(checkout, "node_modules"));
  return checkout;
}

async function pack(folder: string): Promise<string> {
  const args = ["pack", "--json", "--pack-destination", folder];
  const cwd = copyOfCheckout(folder);
  const { stdout } = await run("npm", args, { cwd, maxBuffer: 64 * 1024 * 1024 });
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf("[\n"))) as [{ filename: string }];
  return join(folder, filename);
}

/**
 * In CI, packages come from the registry. Elsewhere the checkout's packages are linked, which is faster and
 * needs no network.
 */
async function install(tarball: string): Promise<void> {
  if (process.env.CI !== undefined) {
    const flags = ["--prefer-offline", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"];
    await run("npm", ["install", ...flags, "--fetch-retries=1", tarball], { cwd: app });
    return;
  }
  const there = join(app, "node_modules");
  mkdirSync(join(there, "parley-gateway"), { recursive: true });
  for (const name of readdirSync(MODULES))
    if (!name.startsWith(".")) symlinkSync(join(MODULES, name), join(there, name));
  await run("tar", ["-xzf", tarball, "--strip-components=1", "-C", join(there, "parley-gateway")]);
  mkdirSync(join(there, ".bin"));
  const { bin } = JSON.parse(readFileSync(join(there, "parley-gateway/package.json"), "utf8"));
  for (const name of Object.keys(bin))
    symlinkSync(`../parley-gateway/${bin[name]}`, join(there, ".bin", name));
}

const launcher = (): string => join(app, "node_modules/parley-gateway/bin/parley.js");

async function parley(...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [launcher(), ...args], { cwd: app, env: environment(home) });
  return stdout;
}

/** Returns TypeScript's errors for these files, in strict mode. */
async function compilerSays(names: readonly string[]): Promise<string> {
  const strict = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "false"];
  const types = ["--types", "node", "--typeRoots", join(MODULES, "@types")];
  const flags = [...strict, ...types, "--module", "nodenext", "--target", "es2024"];
  const tsc = join(MODULES, "typescript/bin/tsc");
  const ended = run(process.execPath, [tsc, ...flags, ...names], { cwd: app });
  return ended.then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
}

const WRONG = `
import { type ChatEvent, connect, GatewayError } from "parley-gateway/client";
const client = await connect({ url: "ws://127.0.0.1:1" });
const page = await client.request("sessions.list", { limit: 3 });
const keys: string[] = page.sessions.map(({ key, state }) => key + state);
const history = await client.request("chat.history", { sessionKey: "main" });
const ids: string[] = history.messages.map(({ id }) => id);
const hint: string | undefined = new GatewayError("CLOSED", "x").hint;
for await (const { event, payload } of client.events({ names: ["chat", "sessions"] })) {
  if (event === "chat") { const chat: ChatEvent = payload; console.log(chat.runId); }
  // @ts-expect-error Not asked for.
  if (event === "tick") continue;
}
export { ids, keys, hint };
// @ts-expect-error There is no such method.
await client.request("sessions.lists");
// @ts-expect-error There is no such param.
await client.request("sessions.list", { limits: 3 });
// @ts-expect-error A session is needed.
await client.request("chat.history");
// @ts-expect-error A number is needed.
await client.request("agent.wait", { runId: "x", timeoutMs: "3" });
`;

/** Starts a program. Resolves when its output contains `words`; `said` returns the output so far. */
async function start(
  file: string,
  args: readonly string[],
  words: RegExp,
  env: NodeJS.ProcessEnv = { ...environment(home), PARLEY_URL: url, PARLEY_TOKEN: TOKEN },
) {
  const child = spawn(process.execPath, [file, ...args], {
    cwd: app,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  let look = (): void => {};
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      look();
    });
  }
  const heard = (wanted: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      look = () => {
        const found = wanted.exec(said);
        if (found !== null) resolve(found);
      };
      child.once("close", (code) => reject(new Error(`it ended with ${code}: ${said}`)));
      look();
    });
  return { child, found: await heard(words), heard, said: () => said };
}

async function stop(child: ChildProcess, signal: "SIGINT" | "SIGTERM"): Promise<unknown> {
  const exited = once(child, "exit");
  child.kill(signal);
  return (await exited)[0];
}

/** Returns the files that the program loads when it starts with these files of `dist`, and themselves. */
function filesLoadedBy(...names: string[]): ReadonlySet<string> {
  const dist = join(app, "node_modules/parley-gateway/dist");
  const loaded = new Set(names.map((name) => join(dist, name)));
  for (const file of loaded) {
    const text = readFileSync(file, "latin1");
    for (const [, path = ""] of text.matchAll(/^(?:import|export)\b[^"]*"(\.[^"]+)";$/gm))
      loaded.add(join(dirname(file), path));
  }
  return loaded;
}

/** Writes the programs in docs/CLIENT.md into the folder. The first line of each names its file. */
function writePrograms(): string[] {
  const text = readFileSync(join(ROOT, "docs/CLIENT.md"), "utf8");
  return [...text.matchAll(/^```ts\n(\/\/ (\w+\.ts): [\s\S]*?)^```/gm)].map(([, program = "", name = ""]) => {
    writeFileSync(join(app, name), program);
    return name;
  });
}

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "parley-package-"));
  app = join(home, "empty folder");
  mkdirSync(app);
  writeFileSync(join(app, "package.json"), '{ "private": true, "type": "module" }');
  await install(await pack(home));
  mkdirSync(join(home, ".parley"));
  const sandbox =
    (await whyNot("bubblewrap")) === undefined ? { mode: "all", backend: "bubblewrap" } : { mode: "off" };
  const config = { gateway: { port: 0, auth: { token: TOKEN } }, agents: { defaults: { sandbox } } };
  writeFileSync(join(home, ".parley/parley.json5"), JSON.stringify(config));
  const started = await start(launcher(), [], /http:\/\/127\.0\.0\.1:\d+/);
  gateway = started.child;
  url = started.found[0];
});

afterAll(async () => {
  if (gateway?.exitCode === null) await stop(gateway, "SIGTERM");
  await rm(home, { recursive: true, force: true });
});

function sizeOf(folder: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name));
  return files.reduce((sum, file) => sum + (statSync(file).isFile() ? statSync(file).size : 0), 0);
}

test("the program starts from few files, and they are ASCII", () => {
  const [command, gateway] = [filesLoadedBy("main.js"), filesLoadedBy("main.js", "app.js")];
  expect(command.size).toBeGreaterThan(1);
  expect(command.size).toBeLessThan(15);
  expect(gateway.size).toBeGreaterThan(command.size);
  expect(gateway.size).toBeLessThan(60);
  const isAscii = (file: string): boolean => readFileSync(file).every((byte) => byte < 0x80);
  expect([...gateway].filter((file) => !isAscii(file))).toEqual([]);
});

test("NH1: a client over WebSocket makes the gateway load neither TLS nor fetch", async () => {
  const loaded = join(home, "loaded.json");
  const probe = join(home, "probe.mjs");
  writeFileSync(
    probe,
    `import { writeFileSync } from "node:fs";
     if (process.argv.includes("gateway"))
       process.once("exit", () => writeFileSync(${JSON.stringify(loaded)}, JSON.stringify(process.moduleLoadList)));`,
  );
  const own = join(home, "own home");
  mkdirSync(join(own, ".parley"), { recursive: true });
  const config = { gateway: { port: 0, auth: { token: TOKEN } } };
  writeFileSync(join(own, ".parley/parley.json5"), JSON.stringify(config));
  const env = { ...environment(own), NODE_OPTIONS: `--import=${pathToFileURL(probe)}` };
  const { child, found } = await start(launcher(), ["gateway"], /http:\/\/127\.0\.0\.1:\d+/, env);
  const at = ["--url", found[0], "--token", TOKEN];
  expect(await parley(...at, "send", "--session", "main", "--wait", "20", "say hello")).toContain("hello");
  expect(await stop(child, "SIGTERM")).toBe(0);
  const names = JSON.parse(readFileSync(loaded, "utf8")) as string[];
  expect(names).toContain("NativeModule http");
  expect(names.filter((name) => /NativeModule (internal\/deps\/undici|http2|https|tls)/.test(name))).toEqual(
    [],
  );
});

test("the package is small and contains no development files", () => {
  const folder = join(app, "node_modules/parley-gateway");
  expect(sizeOf(folder)).toBeLessThan(PACKED_MAX_BYTES);
  expect(
    readdirSync(folder)
      .filter((name) => name !== "node_modules")
      .sort(),
  ).toEqual(
    [
      "CHANGELOG.md",
      "CONTRIBUTING.md",
      "LICENSE",
      "README.md",
      "SECURITY.md",
      "bin",
      "dist",
      "docs",
      "package.json",
    ].sort(),
  );
  // A package that contains other libraries must contain their licences.
  const licenses = (file: string): string => readFileSync(join(folder, file), "utf8");
  for (const name of ["kysely", "sonic-boom"]) expect(licenses("dist/licenses.md")).toContain(`## ${name} `);
  expect(licenses("dist/ui/licenses.md")).toContain("## preact ");
  expect(licenses("dist/ui/inter-license.txt")).toContain("SIL OPEN FONT LICENSE");
  expect(existsSync(join(app, "node_modules/vitest")) && process.env.CI !== undefined).toBe(false);
});

test("every relative link of the README leads to a file of the package", () => {
  const folder = join(app, "node_modules/parley-gateway");
  const text = readFileSync(join(folder, "README.md"), "utf8");
  const links = [...text.matchAll(/\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"/g)].map((m) => m[1] ?? m[2] ?? "");
  const relative = links.filter((link) => !/^(?:https?:|mailto:|#)/.test(link));
  expect(relative.length).toBeGreaterThan(10);
  expect(relative.filter((link) => !existsSync(join(folder, link.replace(/#.*$/, ""))))).toEqual([]);
});

test("npx starts the package by its own name, because parley is another package on npm", async () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const args = ["-y", "parley-gateway", "--version"];
  const { stdout } = await run("npx", args, { cwd: app, env: environment(home) });
  expect(stdout.trim()).toBe(version);
});

test("the package's command works as the README says: a gateway, messages, lists, the demo", async () => {
  const at = ["--url", url, "--token", TOKEN];
  expect(await parley(...at, "send", "--session", "main", "--wait", "20", "say hello")).toContain("hello");
  expect(await parley(...at, "sessions")).toContain("agent:main:main");
  expect(await parley(...at, "sessions", "history", "main")).toContain("say hello");
  expect(JSON.parse(await parley(...at, "--json", "agents"))).toMatchObject({ agents: [{ id: "main" }] });
  expect(await parley("config", "check")).toContain("parley.json5");
  expect(await parley("demo")).toContain("All 7 steps passed");
});

test("the package contains the web page and serves it", async () => {
  const html = await (await fetch(url)).text();
  const script = /src="(\/assets\/[\w.-]+\.js)"/.exec(html)?.[1];
  expect((await fetch(`${url}${script}`)).headers.get("content-type")).toContain("javascript");
});

test("the package has the files that the program expects in it: its version, the sandbox's worker", async () => {
  const at = ["--url", url, "--token", TOKEN];
  const send = (text: string) => parley(...at, "send", "--session", "main", "--wait", "20", text);
  expect(await send("write file notes.txt: kept")).toContain("status ok, path notes.txt");
  expect(await send("read file notes.txt")).toContain("kept");
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(JSON.parse(await parley(...at, "--json", "call", "health"))).toMatchObject({ version, ok: true });
});

test("the types cover methods, params, answers and events: wrong programs do not compile, and documented ones do", async () => {
  writeFileSync(join(app, "wrong.ts"), WRONG);
  const names = writePrograms();
  expect(names).toEqual(["send.ts", "follow.ts", "bot.ts"]);
  expect(await compilerSays([...names, "wrong.ts"])).toBe("");
});

test("the programs of docs/CLIENT.md work as documented", async () => {
  writePrograms();
  const follow = await start("follow.ts", [], /following main/);
  const bot = await start("bot.ts", [], /the bot listens/);
  const send = await start("send.ts", ["say bot: what is 20 + 22?"], /bot: what is 20 \+ 22\?/);
  await follow.heard(/it is 42\n/);
  expect(follow.said()).toBe("following main\nbot: what is 20 + 22?\nit is 42\n");
  if (send.child.exitCode === null) await once(send.child, "exit");
  expect(await stop(follow.child, "SIGINT")).toBe(0);
  await stop(bot.child, "SIGTERM");
});

test("in a browser the client is one script that needs no Node modules", async () => {
  const entry = 'import { connect } from "parley-gateway/client";\nglobalThis.done(connect);\n';
  writeFileSync(join(app, "page.js"), entry);
  const outDir = join(app, "page");
  const deps = { alwaysBundle: [/./] };
  const wanted = { cwd: app, entry: "page.js", outDir, platform: "browser", format: "iife" } as const;
  await build({ ...wanted, config: false, dts: false, deps, logLevel: "error", report: false });
  const [file = ""] = readdirSync(outDir);
  const script = readFileSync(join(outDir, file), "utf8");
  for (const text of [
    script,
    readFileSync(join(app, "node_modules/parley-gateway/dist/client/web.js"), "utf8"),
  ])
    expect(text.match(/\brequire\(|\bimport\s*[("']|^import |node:|\bprocess\.|\bBuffer\b/gm)).toBeNull();
  // The script gets only globals that a web page has.
  const { WebSocket, URL, AbortController, console, setTimeout, clearTimeout, performance, crypto } =
    globalThis;
  const page = { WebSocket, URL, AbortController, console, setTimeout, clearTimeout, performance, crypto };
  const loaded = Promise.withResolvers<typeof import("../../src/contract/client/node.ts").connect>();
  new Script(script).runInContext(createContext({ ...page, done: loaded.resolve }));
  const connect = await loaded.promise;
  const client = await connect({ url, token: TOKEN });
  const events = client.events({ sessionKey: "main", names: ["chat"] });
  const { runId, done } = client.agent({ sessionKey: "main", message: "say from a page" });
  expect(await done).toMatchObject({ status: "ok", result: { text: "from a page" } });
  expect((await events.next()).value).toMatchObject({ event: "chat", payload: { runId } });
  client.close();
});

function olderNode(): string | undefined {
  const nodes = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "node"));
  const versionOf = (node: string) => spawnSync(node, ["--version"], { encoding: "utf8" }).stdout;
  return nodes.filter(existsSync).find((node) => versionOf(node).startsWith("v20."));
}

const older = olderNode();

// Skipped if Node 20 is not installed.
test.skipIf(lacks("Node 20", older !== undefined))(
  "on Node 20 the client works, and the command names the required Node",
  async () => {
    writeFileSync(
      join(app, "old.mjs"),
      `import { connect } from "parley-gateway/client";
     const client = await connect({ url: "${url}", token: "${TOKEN}" });
     console.log((await client.agent({ message: "say I am old" }).done).result.text);
     client.close();`,
    );
    const env = environment(home);
    const { stdout } = await run(older ?? "", ["old.mjs"], { cwd: app, env });
    expect(stdout).toBe("I am old\n");
    // Outside the checkout, npm has installed no newer Node next to the package.
    const alone = join(home, "alone/parley-gateway");
    cpSync(join(app, "node_modules/parley-gateway"), alone, { recursive: true });
    const refused = run(older ?? "", [join(alone, "bin/parley.js"), "demo"], { env });
    await expect(refused).rejects.toMatchObject({
      code: 1,
      stderr: /^Parley needs Node 24 or newer; this is Node 20/,
    });
  },
);

/** Arguments that start a program as a user who owns no files. Empty if the test does not run as root. */
const NOBODY = 65_534;
const asNobody =
  process.getuid?.() === 0
    ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", process.execPath]
    : [process.execPath];
const [becoming = "", ...becomingArgs] = asNobody;
const canBecome = spawnSync(becoming, [...becomingArgs, "--version"]).status === 0;

// Skipped if root cannot start Node as another user: setpriv is missing, or only root may run this Node.
test.skipIf(lacks("another user who can run Node", canBecome))(
  "the gateway starts as a user who can write only to its home, as in the container",
  async () => {
    const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
    const words = (name: string): string[] =>
      JSON.parse(new RegExp(`^${name} (\\[.*\\])$`, "m").exec(dockerfile)?.[1] ?? "[]");
    const folder = join(app, "node_modules/parley-gateway");
    const command = [...words("ENTRYPOINT").slice(1), ...words("CMD")]
      .map((word) => word.replace("/opt/parley", folder))
      .map((word) => (word === "7275" ? "0" : word));
    const data = join(home, "data");
    mkdirSync(data, { mode: 0o700 });
    if (process.getuid?.() === 0) chownSync(data, NOBODY, NOBODY);
    for (const way of [home, app]) chmodSync(way, 0o711);
    await run("chmod", ["-R", "a-w", folder]);
    const env = { PATH: process.env.PATH, HOME: data, PARLEY_TOKEN: TOKEN, NODE_ENV: "production" };
    const child = spawn(becoming, [...becomingArgs, ...command], { cwd: data, env, stdio: "pipe" });
    const printed = await new Promise<string>((resolve, reject) => {
      let said = "";
      for (const stream of [child.stdout, child.stderr])
        stream.on("data", (chunk: Buffer) => {
          said += chunk.toString();
          if (/Or, in another terminal/.test(said)) resolve(said);
        });
      child.once("close", (code) => reject(new Error(`it ended with ${code}: ${said}`)));
    });
    try {
      const there = /http:\/\/[\d.]+:\d+/.exec(printed)?.[0] ?? "";
      expect(await (await fetch(`${there}/healthz`)).json()).toMatchObject({ ok: true });
      const send = [
        "--url",
        there.replace("http", "ws"),
        "--token",
        TOKEN,
        "send",
        "--wait",
        "20",
        "say hello",
      ];
      expect(await parley(...send, "--session", "main")).toContain("hello");
      expect(existsSync(join(data, ".parley/state/parley.sqlite"))).toBe(true);
    } finally {
      expect(await stop(child, "SIGTERM")).toBe(0);
    }
  },
);

test("the gateway of an installed package stops on a signal", async () => {
  expect(await stop(gateway, "SIGTERM")).toBe(0);
});
