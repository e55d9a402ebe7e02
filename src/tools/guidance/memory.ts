// Defines the tool `memory`, with which an agent keeps its memory. core/rules/prompt/memory.ts decides which
// sessions have it.

import { optional } from "../../core/optional.ts";
import { countedMemory, isGuest, type MemoryChange, withoutMemory } from "../../core/rules/prompt/memory.ts";
import type { SpawnChain } from "../../core/rules/sandbox-policy.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { changeMemory } from "../../flows/memory.ts";
import { readMemory } from "../../store/queries/agent-memory.ts";
import type { Db } from "../../store/sql.ts";
import { type CallerContext, type Tool, tool, type WritingContext } from "../tool.ts";
import { outsideCaller, WAITS_NOTE } from "./guard.ts";

type Context = CallerContext & WritingContext;

/** Returns the memory for the prompt of a run, or undefined if the run does not know it. */
export async function memoryFor(
  db: Db,
  settings: Settings,
  chain: SpawnChain,
  run: Pick<Run, "input"> | undefined,
): Promise<string | undefined> {
  if (withoutMemory(chain, settings) !== undefined) return undefined;
  if (run?.input.guest === true) return undefined;
  return countedMemory(await readMemory(db, chain[0].agentId));
}

function changeOf(args: { action: string; text?: string; oldText?: string }): Result<MemoryChange> {
  const { action, text = "", oldText = "" } = args;
  const missing = (name: string) => fail("invalid_argument", `${action} needs ${name}`);
  if (action !== "add" && oldText === "") return missing("oldText");
  if (action === "remove") return ok({ action, oldText });
  if (text.trim() === "") return missing("text");
  return ok(action === "add" ? { action, text } : { action: "replace", oldText, text });
}

export const memoryTool: Tool<Context> = tool("memory", {
  async execute(ctx, args, { callId }) {
    const { db, settings, chain, run, wait, engine, agent } = ctx;
    const known = isGuest(ctx.viewer) ? undefined : await memoryFor(db, settings, chain, run);
    if (known === undefined) {
      return fail(
        "tool_denied",
        "this conversation began with somebody who may not read the agent's memory",
        {
          hint: "Only owners and tokens for every session may.",
        },
      );
    }
    if (args.action === "read") return ok({ status: "ok", text: known });
    const { action, text, oldText } = args;
    const change = changeOf({ action, ...optional({ text, oldText }) });
    if (!change.ok) return change;
    const outside = await outsideCaller(ctx);
    const changed = await changeMemory(engine, agent.id, change.value, { callId, wait, outside });
    if (!changed.ok) return changed;
    const waiting = outside && changed.value.confirmed !== undefined ? `the memory ${WAITS_NOTE}` : undefined;
    return ok({ status: "ok", bytes: Buffer.byteLength(changed.value.text), ...optional({ waiting }) });
  },
});
