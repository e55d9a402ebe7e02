// Makes the last check before a tool touches files or starts a command.
// CO1: the tools of a sandboxed session run in its sandbox, or they fail. This holds for every caller, even
//      for one that passed no sandbox.

import { isSandboxed } from "../core/rules/sandbox-policy.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { CallerContext, ReadingContext } from "./tool.ts";

/** The parts of a call that the decision needs. */
export interface Containable extends Pick<ReadingContext, "settings">, Pick<CallerContext, "chain"> {
  /** The sandbox of read, write, edit and exec. Absent if the session is not sandboxed. */
  readonly sandbox?: Sandbox;
}

/** Returns the sandbox of a call, or undefined if the session is not sandboxed. */
export function sandboxOf(ctx: Containable): Result<Sandbox | undefined> {
  if (ctx.sandbox !== undefined || !isSandboxed(ctx.chain, ctx.settings)) return ok(ctx.sandbox);
  return fail("sandbox_unavailable", "this session is sandboxed, and the call came without a sandbox");
}
