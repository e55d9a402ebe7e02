// Owns the last look before a tool touches files or starts a command: where it may do so.
// CO1: the tools of a sandboxed session work in its sandbox or not at all, whoever calls them and whatever
//      the caller forgot to bring.

import { fail, ok, type Result } from "../core/errors.ts";
import { isSandboxed } from "../core/sandbox-policy.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ToolContext } from "./tool.ts";

/** What the decision needs of a call. */
export type Containable = Pick<ToolContext, "sandbox" | "chain" | "settings">;

/** The sandbox to work in; undefined for a session that works bare. */
export function sandboxOf(ctx: Containable): Result<Sandbox | undefined> {
  if (ctx.sandbox !== undefined || !isSandboxed(ctx.chain, ctx.settings)) return ok(ctx.sandbox);
  return fail("sandbox_unavailable", "this session is sandboxed, and the call came without a sandbox");
}
