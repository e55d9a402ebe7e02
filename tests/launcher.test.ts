// The launcher in a test package, with this Node, and with an older Node if one is installed.

import { spawn, spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isFresh, madeOf, noteMadeOf } from "../bin/freshness.js";
import { heapFlags } from "../bin/heap-flags.js";
import { keepOnly, putInPlace } from "../ui/put-in-place.js";
import { lacks } from "./kit/process/lacks.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const LAUNCHER = join(ROOT, "bin/parley.js");

/** Copies all files that the launcher needs to start a program. */
function copyLauncher(into: string): void {
  for (const name of ["parley.js", "heap-flags.js"])
    copyFileSync(join(dirname(LAUNCHER), name), join(into, "bin", name));
}

/** The package of Node for this system: the only one of the dependencies of that kind that npm installs. */
const [OWN_NODE = ""] = Object.keys(
  (JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as typeof import("../package.json"))
    .optionalDependencies,
).filter((name) => name.startsWith("node-") && existsSync(join(ROOT, "node_modules", name)));

/** Puts a Node into a package of this folder, as npm does. */
function installNode(folder: string, path: string, version: string, name = OWN_NODE): void {
  const there = join(folder, "node_modules", name);
  mkdirSync(join(there, "bin"), { recursive: true });
  symlinkSync(path, join(there, "bin/node"));
  writeFileSync(join(there, "package.json"), JSON.stringify({ name, version }));
}

let home: string;
let launcher: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "parley-launcher-"));
  for (const folder of ["bin", "src", "dist"]) {
    mkdirSync(join(home, folder), { recursive: true });
  }
  launcher = join(home, "bin/parley.js");
  copyLauncher(home);
  writeFileSync(join(home, "package.json"), '{ "type": "module" }');
  installNode(home, process.execPath, process.versions.node);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/**
 * Returns a program that prints its arguments and the Node version, then exits with 7, or waits for SIGTERM
 * and exits with 8.
 */
const program = (from: string) => `
  const major = Number(process.versions.node.split(".")[0]);
  export async function main(argv) {
    const facts = { from: "${from}", argv, isNew: major >= 24, pid: process.pid, flags: process.execArgv,
      env: Object.keys(process.env).filter((name) => /^MALLOC_|^PARLEY_/.test(name)) };
    const tell = () => console.log(JSON.stringify(facts));
    if (argv[0] !== "stay") { tell(); return 7; }
    const alive = setInterval(() => undefined, 1000);
    const ended = new Promise((done) => process.once("SIGTERM", () => { clearInterval(alive); done(8); }));
    tell();
    return ended;
  }
`;

function oldNode(): string | undefined {
  const places = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "node"));
  return places.filter(existsSync).find((node) => {
    const { stdout } = spawnSync(node, ["--version"], { encoding: "utf8" });
    return Number(/^v(\d+)/.exec(stdout)?.[1]) < 24;
  });
}

const older = oldNode();
const noOlder = lacks("a Node before 24", older !== undefined);

function start(node: string, args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(node, [launcher, ...args], { encoding: "utf8" });
  return { status, told: stdout === "" ? undefined : JSON.parse(stdout), stderr };
}

test("a checkout runs src, a package runs dist, and both pass on arguments and exit code", () => {
  writeFileSync(join(home, "dist/main.js"), program("dist"));
  expect(start(process.execPath, ["a", "--b"])).toMatchObject({
    status: 7,
    told: { from: "dist", argv: ["a", "--b"] },
  });
  writeFileSync(join(home, "src/main.ts"), program("src").replace("main(argv)", "main(argv: string[])"));
  expect(start(process.execPath, [])).toMatchObject({ status: 7, told: { from: "src", argv: [] } });
});

test("L3: a gateway runs with a small heap unless the user sets that flag, and other commands run with the default heap", () => {
  writeFileSync(join(home, "dist/main.js"), program("dist"));
  const flagsOf = (args: string[], own: string[] = []): unknown => {
    const { stdout } = spawnSync(process.execPath, [...own, launcher, ...args], { encoding: "utf8" });
    return JSON.parse(stdout).flags;
  };
  const young = "--max-semi-space-size=8";
  const others = ["--heap-growing-percent=20", "--concurrent-maglev-max-threads=0"];
  expect(flagsOf(["gateway", "--port", "0"])).toEqual([young, ...others]);
  expect(flagsOf([], ["--no-deprecation"])).toEqual(["--no-deprecation", young, ...others]);
  expect(flagsOf(["gateway"], ["--max-semi-space-size=32"])).toEqual(["--max-semi-space-size=32", ...others]);
  expect(flagsOf(["sessions", "list"])).toEqual([]);
  expect(start(process.execPath, ["gateway"]).told.env).toEqual([]);
  expect(start(process.execPath, ["gateway"])).toMatchObject({ status: 7, told: { argv: ["gateway"] } });
});

test("L3: a Node that may not know a flag of V8 does not get it, because it would not start", () => {
  const [ours, later] = ["24.21.0", "26.0.0"].map((version) => heapFlags(["gateway"], [], version));
  expect(ours).toHaveLength(3);
  expect(later).toEqual(["--max-semi-space-size=8"]);
});

test("L2: a checkout runs the build if it was made from exactly its files; if one of them has changed, it runs src", () => {
  copyFileSync(join(dirname(LAUNCHER), "freshness.js"), join(home, "bin/freshness.js"));
  for (const name of ["package-lock.json", "tsdown.config.ts", "node_modules/.package-lock.json"])
    writeFileSync(join(home, name), "{}");
  writeFileSync(join(home, "src/main.ts"), program("src").replace("main(argv)", "main(argv: string[])"));
  mkdirSync(join(home, "src/core"));
  writeFileSync(join(home, "src/core/a.ts"), "export const a = 1;");
  writeFileSync(join(home, "dist/main.js"), program("dist"));
  const from = () => start(process.execPath, []).told.from;
  expect(from()).toBe("src");
  noteMadeOf(home, madeOf(home));
  expect([isFresh(home), from()]).toEqual([true, "dist"]);
  for (const name of ["src/core/a.ts", "package-lock.json", "node_modules/.package-lock.json"]) {
    const { atime, mtime } = statSync(join(home, name));
    utimesSync(join(home, name), atime, new Date(mtime.getTime() + 1));
    expect([name, isFresh(home), from()]).toEqual([name, false, "src"]);
    noteMadeOf(home, madeOf(home));
    expect(isFresh(home)).toBe(true);
  }
  // This file is missing if another installer was used, or if npm put the libraries into a parent folder.
  rmSync(join(home, "node_modules/.package-lock.json"));
  expect(isFresh(home)).toBe(false);
  noteMadeOf(home, madeOf(home));
  expect([isFresh(home), from()]).toEqual([true, "dist"]);
  rmSync(join(home, "src/core/a.ts"));
  expect(isFresh(home)).toBe(false);
  writeFileSync(join(home, "dist/made-of.json"), "half of a no");
  expect(from()).toBe("src");
});

test("if two builds run in parallel, the later one remains, complete; a failed build changes nothing", async () => {
  const dist = join(home, "dist");
  const meanwhile = Promise.withResolvers<void>();
  const build = (word: string, between?: Promise<void>) =>
    putInPlace(dist, async (made) => {
      mkdirSync(join(made, "parts"));
      writeFileSync(join(made, "parts/a.js"), word);
      await between;
      writeFileSync(join(made, "main.js"), word);
    });
  const there = () => {
    const names = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith(".js"),
    );
    return Object.fromEntries(names.map((name) => [name, readFileSync(join(dist, name), "utf8")]));
  };
  const slow = build("slow", meanwhile.promise);
  await build("quick");
  keepOnly(dist, ["main.js", "parts"]);
  expect(there()).toMatchObject({ "main.js": "quick", "parts/a.js": "quick" });
  meanwhile.resolve();
  await slow;
  const whole = { "main.js": "slow", "parts/a.js": "slow" };
  expect(there()).toEqual(whole);
  await expect(build("broken", Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect([there(), readdirSync(dist).sort()]).toEqual([whole, ["main.js", "parts"]]);
});

test("if a reader closes its pipe early, the command reports no error", () => {
  writeFileSync(
    join(home, "dist/main.js"),
    'export const main = async () => { for (let i = 0; i < 1e5; i += 1) console.log("line", i); return 0; };',
  );
  const { stdout, stderr } = spawnSync("bash", ["-c", `"${process.execPath}" "${launcher}" | head -1`], {
    encoding: "utf8",
  });
  expect({ stdout, stderr }).toEqual({ stdout: "line 0\n", stderr: "" });
});

test("an install of the package brings the Node that the launcher needs, without a script", () => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const { optionalDependencies } = packages[""];
  const nodes = Object.keys(optionalDependencies).filter((name) => /^node-/.test(name));
  const systems = nodes.map((name) => {
    const { os, cpu, version, hasInstallScript } = packages[`node_modules/${name}`];
    expect([hasInstallScript, Number(version.split(".")[0]) >= 24]).toEqual([undefined, true]);
    return `${os}-${cpu}`;
  });
  const wanted = ["darwin", "linux", "win32"].flatMap((os) => [`${os}-arm64`, `${os}-x64`]);
  expect(systems.sort()).toEqual(wanted);
});

// Skipped if no older Node is installed.
test.skipIf(noOlder)(
  "with an older Node, the launcher runs the command with the newer Node that is installed",
  () => {
    writeFileSync(join(home, "dist/main.js"), program("dist"));
    expect(start(older ?? "", ["x y"])).toMatchObject({ status: 7, told: { argv: ["x y"], isNew: true } });
    rmSync(join(home, "node_modules", OWN_NODE, "bin/node"));
    installNode(home, process.execPath, process.versions.node, "node");
    expect(start(older ?? "", [])).toMatchObject({ status: 7, told: { isNew: true } });
    rmSync(join(home, "node_modules/node/bin/node"));
    const refused = start(older ?? "", []);
    expect(refused).toMatchObject({ status: 1, told: undefined });
    expect(refused.stderr).toMatch(
      /^Parley needs Node 24 or newer; this is Node \d+\..*\n.*npm install node@24 \(in a checkout: npm ci\)\n$/,
    );
  },
);

// Skipped if no older Node is installed.
test.skipIf(noOlder)(
  "the launcher finds a Node that npm installed next to the package, and does not use one that is too old",
  () => {
    writeFileSync(join(home, "dist/main.js"), program("dist"));
    const folder = join(home, "app/node_modules/parley-gateway");
    for (const one of ["bin", "dist"]) mkdirSync(join(folder, one), { recursive: true });
    copyLauncher(folder);
    copyFileSync(join(home, "dist/main.js"), join(folder, "dist/main.js"));
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    launcher = join(folder, "bin/parley.js");
    expect(start(older ?? "", [])).toMatchObject({ status: 7, told: { isNew: true } });
    installNode(join(home, "app"), older ?? "", "20.0.0");
    const refused = start(older ?? "", []);
    expect(refused).toMatchObject({ status: 1, told: undefined });
    expect(refused.stderr).toContain("Parley needs Node 24");
  },
);

// Skipped if no older Node is installed.
test.skipIf(noOlder).each([
  ["SIGTERM", 8, null],
  ["SIGKILL", null, "SIGKILL"],
] as const)(
  "with an older Node, %s reaches the process that the launcher started",
  async (signal, code, killed) => {
    writeFileSync(join(home, "dist/main.js"), program("dist"));
    const child = spawn(older ?? "", [launcher, "stay"], { stdio: ["ignore", "pipe", "inherit"] });
    const told = await new Promise<string>((done) =>
      child.stdout.once("data", (chunk) => done(String(chunk))),
    );
    // The pipe closes when the last process that has it open exits.
    const closed = new Promise<void>((done) => child.stdout.once("close", () => done()));
    const exited = new Promise((done) => child.once("exit", (...ending) => done(ending)));
    expect(JSON.parse(told).pid).not.toBe(child.pid);
    child.kill(signal);
    expect(await exited).toEqual([code, killed]);
    await closed;
  },
);
