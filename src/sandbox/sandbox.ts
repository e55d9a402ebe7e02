// Defines the guarantees of a sandbox for every backend. The first comment of each backend's file lists its
// limitations.
// S1: a sandboxed program can write to its workspace and to a private /tmp of limited size, and nowhere else.
// S2: it can read the system's programs and libraries and nothing else of the host: no home, no configuration
// or store of the gateway, no process and no environment but its own.
// S3: it has no network access unless `network` is on. It never reaches this machine's loopback, its abstract
// sockets or the gateway's own port.
// S4: it has no privileges and cannot get any: no capabilities, no setuid, no new user namespace.
// S5: when `run` returns, everything that it started has exited.
// S6: time, output, memory, processes and disk are limited. Above a limit the program is stopped, and the
// result says why.
// S7: a workspace that would expose the host (/, a system folder, a home, the gateway's own files, another
// agent's workspace inside it) is refused. Every workspace is refused if the gateway's files are in a folder
// that all sandboxes show.
// The git repository of the workspace is read-only unless `git` allows writing (repository.ts): later git
// commands of the user run its hooks outside the sandbox.
// Not guaranteed: sessions that share a workspace share its contents. If an unsandboxed session or a person
// runs a file that a sandboxed session left there (a script, a build file, a nested repository), the file
// runs without a sandbox.
// The workspace has the same path inside and outside, so that paths mean the same everywhere.

import { type Failure, fail, type Result } from "../core/shapes/errors.ts";
import type { SandboxSettings } from "../core/shapes/settings/settings.ts";
import type { ProcessEnd } from "./process/process.ts";

/**
 * The sandbox settings of an agent. `network`: its own network with access to the internet (uplink.ts); with
 * docker, docker's bridge. `diskMb`: limit of the whole workspace; a workspace above it can only shrink.
 * `image`: for docker; it must contain bash, and Node 24 or newer as `node`.
 */
export type SandboxNeeds = Pick<
  SandboxSettings,
  "backend" | "network" | "memoryMb" | "processesMax" | "diskMb" | "git" | "image"
>;

/**
 * Returns the maximum size of temporary files. They are kept in memory, so it is half of the memory limit,
 * but at most the disk limit.
 */
export function temporaryMbOf(needs: Pick<SandboxNeeds, "memoryMb" | "diskMb">): number {
  return Math.min(needs.diskMb, Math.ceil(needs.memoryMb / 2));
}

export type Program =
  | { readonly kind: "shell"; readonly command: string }
  /** A module of Parley's own code, by absolute path. It reads `input` and writes its answer. */
  | { readonly kind: "script"; readonly file: string; readonly input: string };

export interface RunLimits {
  /** Time limit, from the start of the backend. */
  readonly timeoutMs: number;
  /** Maximum bytes of its output; the middle is cut out. */
  readonly outputMaxBytes: number;
  readonly signal: AbortSignal;
  /** PATH inside the sandbox. Default: the system's folders. */
  readonly searchPath?: string;
}

export interface ContainedEnd extends ProcessEnd {
  /** True if the workspace already exceeded `diskMb`, so that no file in it could grow. */
  readonly full: boolean;
}

/** A sandbox for the programs of one workspace. */
export interface Sandbox {
  readonly kind: "bubblewrap" | "docker";
  /** The program that carries the sandbox's network traffic. Absent if it has no network. */
  readonly carrier?: string;
  /**
   * Runs a program in the workspace until it exits. Errors of a shell command are part of its output, in
   * order. Fails if the program could not be started; it never runs without the sandbox.
   */
  run(program: Program, limits: RunLimits): Promise<Result<ContainedEnd>>;
}

/** Builds the failure of a backend that did not run a program. */
export function backendFailure(text: string): Failure {
  return fail("sandbox_unavailable", text, {
    hint: "npx parley-gateway doctor checks the sandbox and explains how to fix it.",
  });
}
