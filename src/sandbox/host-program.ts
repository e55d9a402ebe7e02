// Runs one program for a node, on the node's machine: without a sandbox, but with limits on time and output.
// HP1: the program gets exactly the given environment and no input. Its time is measured by the world's
// clock.
// HP2: at its time limit, or when it is cancelled, everything that it started is killed. Children that left
// the process group are killed only if the system has /proc, through which they are found.

import type { ChildProcess } from "node:child_process";
import type { HostProgram, HostProgramEnd } from "../core/shapes/host-program.ts";
import { killGroup } from "../world/programs.ts";
import type { World } from "../world.ts";
import { runProcess } from "./process/process.ts";
import { treeBelow } from "./process/tree.ts";

const TREE_MAX = 4_096;

function killTree(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  const below = treeBelow(pid, TREE_MAX).processes.map(([first]) => Number(first));
  killGroup(child);
  for (const one of below) {
    try {
      process.kill(one, "SIGKILL");
    } catch {
      // This process has already exited.
    }
  }
}

/** Runs a program until it exits. Rejects if the program could not be started. */
export async function runHostProgram(program: HostProgram, world: World): Promise<HostProgramEnd> {
  const { argv, cwd, env, outputMaxBytes, timeoutMs, signal } = program;
  const [file = "", ...args] = argv;
  const end = await runProcess({
    file,
    args,
    cwd,
    env,
    outputMaxBytes,
    signal,
    kill: killTree,
    watch(_child, stop) {
      const timer = world.clock.after(timeoutMs, () => stop("timeout"), "alive");
      return () => timer.cancel();
    },
  });
  const { text, truncated } = end.output.read();
  return {
    ending: end.ending,
    exitCode: end.exitCode,
    signal: end.signal,
    stdout: text,
    stdoutBytes: end.output.totalBytes,
    truncated,
    stderr: end.errors,
  };
}
