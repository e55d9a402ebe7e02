// Owns what containment promises, whichever backend keeps the promise. What a backend keeps less well stands
// in its own head comment.
// S1: what runs contained can write to its workspace and to a private, bounded /tmp, and nowhere else.
// S2: it reads the system's programs and libraries, read-only, and nothing else of the host: no home, no
//     configuration or store of the gateway, no process and no environment but its own.
// S3: it reaches no network, unless `network` is on. This machine's loopback, its abstract sockets and the
//     gateway's own port it never reaches.
// S4: it has no privileges and can't get any: no capabilities, no setuid, no new user namespace.
// S5: when `run` returns, nothing of it is left: everything that it started has ended.
// S6: time, output, memory, processes and disk are bounded; over a limit it is stopped, and the end says why.
// S7: a workspace that would bring the host in (/, a system folder, a home, the gateway's own files, another
//     agent's workspace inside it) is refused; so is every one while the gateway's files lie where all see.
// S8: the workspace's own git repository, if there is one, is read and not written, unless `git` says so
//     (repository.ts): what it holds is run by any later git of the user, outside.
// What they don't promise: sessions that share a workspace share what is in it. A bare session, or a person,
// who runs or obeys what a contained one left there (a script, a build file, a repository of its own in a
// folder) does it uncontained.
// The workspace has the same path inside and outside, so that paths mean the same to everybody.

import type { Result } from "../core/errors.ts";
import type { SandboxSettings } from "../core/settings.ts";
import type { ProcessEnd } from "./process.ts";

/**
 * What an agent's settings ask of its sandbox.
 * `network` gives it a network of its own with a way out (uplink.ts); with docker, docker's bridge.
 * `diskMb` is for the whole workspace; one that holds more can only shrink.
 * `image` is docker's: it has bash, and Node 24 or newer as `node`.
 */
export type SandboxNeeds = Pick<
  SandboxSettings,
  "backend" | "network" | "memoryMb" | "processesMax" | "diskMb" | "git" | "image"
>;

/** Temporary files are held in memory: they get their own part of it, and no more than the disk's. */
export function temporaryMbOf(needs: Pick<SandboxNeeds, "memoryMb" | "diskMb">): number {
  return Math.min(needs.diskMb, Math.ceil(needs.memoryMb / 2));
}

export type Program =
  | { readonly kind: "shell"; readonly command: string }
  /** A module of the gateway's own code, by its absolute path; it reads `input` and writes its answer. */
  | { readonly kind: "script"; readonly file: string; readonly input: string };

export interface RunLimits {
  /** From the start of the backend. */
  readonly timeoutMs: number;
  /** Of its output; more is cut out in the middle. */
  readonly outputMaxBytes: number;
  readonly signal: AbortSignal;
  /** PATH inside. Left out: the system's folders. */
  readonly searchPath?: string;
}

export interface ContainedEnd extends ProcessEnd {
  /** The workspace already held more than `diskMb`, so that no file in it could grow. */
  readonly full: boolean;
}

/** A place where programs of one workspace run contained. */
export interface Sandbox {
  readonly kind: "bubblewrap" | "docker";
  /** The program that carries its network. Absent: it has no network. */
  readonly carrier?: string;
  /**
   * Runs a program in the workspace to its end. Errors of a shell command come in its output, in the order of
   * writing. A failure means that it was not started; it is never run bare instead.
   */
  run(program: Program, limits: RunLimits): Promise<Result<ContainedEnd>>;
}
