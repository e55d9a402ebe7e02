#!/usr/bin/env node
// Starts Parley: from src in a checkout, from dist in a package. Plain JavaScript that any Node from 18 on
// can read, because its first task is to find out whether this one is new enough.
// L1: on an older Node it starts the one that npm put into node_modules (`npm ci` in a checkout,
//     `npm install node@24` beside the package), and is then invisible: same streams, same signals, same exit
//     code; and when it is killed, so is what it started.
// L2: a checkout runs what was built of it only while that was built of exactly the files that it has now.
// L3: a gateway runs with a smaller heap than the runtime would take. The runtime reads these flags at its
//     start only, so the process replaces itself by one that has them, where the system can.

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
  // Whoever reads our output may leave early, like head does.
  process.stdout.once("error", (error) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
  // Compiled code is kept between starts, so the next one takes a third of the time.
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

function ownHeapFlags() {
  return heapFlags(process.argv.slice(2), [...process.execArgv, process.env.NODE_OPTIONS ?? ""]);
}

function replaceWithSmallHeap() {
  if (ownHeapFlags().length === 0 || process.execve === undefined || process.platform === "win32") return;
  process.execve(process.execPath, [process.execPath, ...launchArgs()], withHeapEnv(process.env));
}

/** The arguments of a Node that goes on in place of this one. */
function launchArgs() {
  const script = fileURLToPath(import.meta.url);
  return [...process.execArgv, ...ownHeapFlags(), script, ...process.argv.slice(2)];
}

/** A launcher that was killed could not pass the signal on; its end of the channel closes all the same. */
function dieWithLauncher() {
  delete process.env[LAUNCHED];
  process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.channel?.unref();
}

/** The Node of npm's package `node`, wherever npm put it. Undefined if there is none. */
function installedNode() {
  try {
    return createRequire(import.meta.url).resolve("node/bin/node");
  } catch {
    return undefined;
  }
}

function startNewerNode() {
  // One that was started here and is too old itself is not asked to start another.
  const node = process.env[LAUNCHED] === undefined ? installedNode() : undefined;
  if (node === undefined) {
    refuse(`this is Node ${process.versions.node}.`);
    return;
  }
  const own = ownHeapFlags().length === 0 ? process.env : withHeapEnv(process.env);
  const env = { ...own, [LAUNCHED]: "1" };
  const child = spawn(node, launchArgs(), { env, stdio: ["inherit", "inherit", "inherit", "ipc"] });
  const onTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY === true);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    // A terminal sends its own signals to both of us; passing them on would double them.
    const fromTerminal = onTerminal && signal === "SIGINT";
    process.on(signal, () => fromTerminal || child.kill(signal));
  }
  child.once("error", (error) => refuse(`${node} could not be started: ${error.message}.`));
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
