#!/usr/bin/env node
// Starts Parley: from src in a checkout, from dist in a package. Plain JavaScript for Node 18 and later,
// because it first checks whether this Node is new enough.
// L1: on an older Node it starts the one that npm installed with Parley (the package of Node for this system,
// which no install script has to fetch), with the same streams, signals and exit code. If the launcher is
// killed, that process also exits.
// L2: a checkout runs its build only if it was built from exactly the current files.
// L3: a gateway runs with a smaller heap than the default. Node reads these flags only at its start, so the
// process replaces itself by one with flags, if the system can.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import nodeModule, { createRequire } from "node:module";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";
import { dropHeapEnv, heapFlags, withHeapEnv } from "./heap-flags.js";

const NODE_MAJOR_MIN = 24;
const LAUNCHED = "PARLEY_LAUNCHED";
const pathOf = (relative) => fileURLToPath(new URL(relative, import.meta.url));

if (Number(process.versions.node.split(".")[0]) >= NODE_MAJOR_MIN) await run();
else startNewerNode();

async function run() {
  if (process.env[LAUNCHED] !== undefined) dieWithLauncher();
  else replaceWithSmallHeap();
  dropHeapEnv(process.env);
  // The program that reads this output may close it early, like `head`.
  process.stdout.once("error", (error) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
  // Stores compiled code for later starts, which then take a third of the time.
  nodeModule.enableCompileCache?.();
  const isBuilt = !existsSync(pathOf("../src/main.ts")) || (await isFreshlyBuilt());
  const { main } = isBuilt ? await import("../dist/main.js") : await import("../src/main.ts");
  process.exitCode = await main(process.argv.slice(2));
}

async function isFreshlyBuilt() {
  if (!existsSync(pathOf("../dist/made-of.json"))) return false;
  const { isFresh } = await import("./freshness.js");
  return isFresh(pathOf("../"));
}

function ownHeapFlags(version) {
  return heapFlags(process.argv.slice(2), [...process.execArgv, process.env.NODE_OPTIONS ?? ""], version);
}

function replaceWithSmallHeap() {
  if (ownHeapFlags().length === 0 || process.execve === undefined || process.platform === "win32") return;
  process.execve(process.execPath, [process.execPath, ...launchArgs()], withHeapEnv(process.env));
}

/** Returns the arguments of a Node process of this version that replaces this one. */
function launchArgs(version) {
  const script = fileURLToPath(import.meta.url);
  return [...process.execArgv, ...ownHeapFlags(version), script, ...process.argv.slice(2)];
}

/**
 * Exits if the launcher dies. A killed launcher cannot forward the signal, but its end closes the channel to
 * this process.
 */
function dieWithLauncher() {
  delete process.env[LAUNCHED];
  process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.channel?.unref();
}

/** Returns the Node that npm installed, as one of Parley's dependencies or as `node`, or undefined. */
function installedNode() {
  const require = createRequire(import.meta.url);
  const { platform, arch } = process;
  const system = { darwin: arch === "arm64" ? "bin-darwin" : "darwin", win32: "win" }[platform] ?? platform;
  const program = platform === "win32" ? "bin/node.exe" : "bin/node";
  for (const name of [`node-${system}-${arch}`, "node"]) {
    try {
      return {
        path: require.resolve(`${name}/${program}`),
        version: require(`${name}/package.json`).version,
      };
    } catch {
      // npm installs neither with --omit=optional, nor on a system without such a package.
    }
  }
}

function startNewerNode() {
  // If the launcher has already started this Node, and this one is too old as well, do not start another one.
  const node = process.env[LAUNCHED] === undefined ? installedNode() : undefined;
  if (node === undefined) {
    refuse(`this is Node ${process.versions.node}.`);
    return;
  }
  const { path, version } = node;
  const own = ownHeapFlags(version).length === 0 ? process.env : withHeapEnv(process.env);
  const env = { ...own, [LAUNCHED]: "1" };
  const child = spawn(path, launchArgs(version), { env, stdio: ["inherit", "inherit", "inherit", "ipc"] });
  const onTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY === true);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    // On Ctrl+C the terminal signals both processes, so don't forward this signal a second time.
    const fromTerminal = onTerminal && signal === "SIGINT";
    process.on(signal, () => fromTerminal || child.kill(signal));
  }
  child.once("error", (error) => refuse(`${path} could not be started: ${error.message}.`));
  child.once("exit", (code, signal) => {
    process.exitCode = signal === null ? code : 128 + constants.signals[signal];
  });
}

function refuse(what) {
  process.stderr.write(
    `Parley needs Node ${NODE_MAJOR_MIN} or newer; ${what}\n` +
      `Install one from https://nodejs.org, or beside Parley: npm install node@${NODE_MAJOR_MIN}` +
      " (in a checkout: npm ci)\n",
  );
  process.exitCode = 1;
}
