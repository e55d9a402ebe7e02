// Owns one program that a node runs on its own machine: bare, but bounded in time and output.
// HP1: it gets the environment that is named and no input; its time is kept by the world's clock.
// HP2: at its time, or when it is let go, everything that it started ends with it, as far as the system shows
//      it; what has left the process group is found among its children where there is a /proc.

import type { ChildProcess } from "node:child_process";
import type { HostProgram, HostProgramEnd } from "../core/node-exec.ts";
import { killGroup } from "../world/programs.ts";
import type { World } from "../world.ts";
import { runProcess } from "./process.ts";
import { treeBelow } from "./process-tree.ts";

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
      // It ended with the group.
    }
  }
}

/** Runs a program to its end. Rejects when it could not be started. */
export async function runHostProgram(program: HostProgram, world: World): Promise<HostProgramEnd> {
  const { argv, cwd, env, outputMaxBytes, timeoutMs, signal } = program;
  const [file = "", ...args] = argv;
  const end = await runProcess({
    ...{ file, args, cwd, env, outputMaxBytes, signal },
    kill: killTree,
    watch(_child, stop) {
      const timer = world.clock.at(world.clock.now() + timeoutMs, () => stop("timeout"), "alive");
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
