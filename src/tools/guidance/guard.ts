// Notes which calls bring outside content into a session, and keeps what such sessions write into instruction
// files from counting before an owner confirms it (flows/instructions.ts).

import { optional } from "../../core/optional.ts";
import { approvalFor } from "../../core/rules/approval/policy.ts";
import { isGuest } from "../../core/rules/prompt/memory.ts";
import { outsideResult, writesIn } from "../../core/rules/prompt/outside.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import { programOf } from "../../core/shapes/settings/settings.ts";
import type { ToolCallRequest } from "../../core/shapes/tool.ts";
import { beginWriting, type PromptFiles, settleInstructions } from "../../flows/instructions.ts";
import type { OutsideCaller } from "../../flows/memory.ts";
import type { OpenCall } from "../../store/queries/instruction-contents.ts";
import { markOutside, outsideAmong, readOutside } from "../../store/queries/outside.ts";
import type { Containable } from "../containment.ts";
import { openWorkspace } from "../files/workspace.ts";
import type { CallerContext, ToolResult, WritingContext } from "../tool.ts";

export interface GuardContext extends CallerContext, WritingContext, Containable {
  /** Absent: no text of a file enters a prompt. */
  readonly guidance?: PromptFiles | undefined;
}

const ANYWHERE = "/";

/** Told to an agent whose change waits. */
export const WAITS_NOTE =
  "waits for an owner's answer, because this conversation has content from outside. Until then, later runs " +
  "do not read the change. Tell the person who asked for it.";

/** Returns the outside content that a call may follow, or undefined if there is none. */
export async function outsideCaller({
  db,
  session,
  run,
  viewer,
}: Pick<GuardContext, "db" | "session" | "run" | "viewer">): Promise<OutsideCaller | undefined> {
  const { key, sessionId } = session;
  const source = isGuest(viewer)
    ? "a token for some sessions"
    : await readOutside(db, { key, sessionId, chainId: run?.chainId });
  return source === undefined ? undefined : { source, sessionKey: key, ...optional({ runId: run?.runId }) };
}

/** Returns the source of outside content in a result, or undefined if it has none. */
async function sourceIn(
  { db, run }: GuardContext,
  { name, arguments: args }: ToolCallRequest,
  result: ToolResult,
): Promise<string | undefined> {
  switch (name) {
    case "sessions_history":
      return outsideAmong(db, [String(result.sessionId)]);
    case "sessions_search": {
      const hits = result.hits as readonly { readonly sessionId: string }[];
      return outsideAmong(db, [...new Set(hits.map(({ sessionId }) => sessionId))]);
    }
    case "sessions_send":
    case "sessions_spawn":
    case "subagents":
      // The other session has marked the chain.
      return readOutside(db, { key: "", sessionId: "", chainId: run?.chainId });
    default:
      return outsideResult(name, args);
  }
}

/** Marks the session and the chain of a call whose result has outside content, before the model reads it. */
export async function noteContent(
  ctx: GuardContext,
  call: ToolCallRequest,
  result: ToolResult,
): Promise<void> {
  const { db, session, run, agent, engine } = ctx;
  if (run === undefined && !session.external) return;
  const source = await sourceIn(ctx, call, result);
  if (source === undefined) return;
  const { key, sessionId } = session;
  const isMarked = (await readOutside(db, { key, sessionId })) !== undefined;
  const chainId = run?.chainId;
  const place = { key: "", sessionId: "", chainId };
  if (isMarked && (chainId === undefined || (await readOutside(db, place)) !== undefined)) return;
  await engine.commit(async (unit) => {
    await markOutside(unit.tx, { key, sessionId, chainId }, source);
    // Its program may write from now on.
    const outside = { source, sessionKey: key, ...optional({ runId: run?.runId }) };
    const { guidance, settings } = ctx;
    if (programOf(agent) !== undefined && guidance !== undefined)
      await beginWriting(unit, { settings, guidance }, { ...lastingCall(outside), at: unit.now });
  });
}

/** Returns the call of a program that nothing contains, and that may still write after the run. */
export const lastingCall = (outside: OutsideCaller): Omit<OpenCall, "at"> => ({
  ...{ id: `after:${ANYWHERE}`, state: "open", path: ANYWHERE, lasts: true },
  ...outside,
});

/** Does work that may write below a folder. Returns its result, and the files that wait for an owner now. */
export async function guardWriting<T>(
  { engine, settings, guidance }: Pick<GuardContext, "engine" | "settings"> & { guidance: PromptFiles },
  call: Omit<OpenCall, "at">,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly waiting: readonly string[] }> {
  const parts = { settings, guidance };
  const settle = () => engine.commit((unit) => settleInstructions(unit, parts, call.id));
  await engine.commit((unit) => beginWriting(unit, parts, { ...call, at: unit.now }));
  const result = await work().catch(async (error: unknown) => {
    await settle();
    throw error;
  });
  return { result, waiting: await settle() };
}

/** Returns where a call of a run with outside content may write, or undefined if it may write nowhere. */
async function openCall(ctx: GuardContext, call: ToolCallRequest): Promise<Omit<OpenCall, "at"> | undefined> {
  const { chain, settings, sandbox, agent } = ctx;
  const where = writesIn(call.name, sandbox !== undefined);
  const outside = where === "nowhere" ? undefined : await outsideCaller(ctx);
  if (outside === undefined) return undefined;
  // Without an approval, nobody has seen whether the command leaves a program running.
  const isUnseen = call.name === "exec" && approvalFor(chain, settings).mode === "never";
  if (where === "anywhere" && isUnseen) return lastingCall(outside);
  const workspace = where === "workspace" ? await openWorkspace(agent.workspace) : ok(ANYWHERE);
  const path = workspace.ok ? workspace.value : agent.workspace;
  return { id: call.callId, state: "open", path, lasts: false, ...outside };
}

/** Runs a tool. If it changed instruction files after outside content, its result says that they wait. */
export async function guarded(
  ctx: GuardContext,
  call: ToolCallRequest,
  work: () => Promise<Result<ToolResult>>,
): Promise<Result<ToolResult>> {
  const { guidance } = ctx;
  const open = guidance && (await openCall(ctx, call));
  if (guidance === undefined || open === undefined) return work();
  const { result, waiting } = await guardWriting({ ...ctx, guidance }, open, work);
  if (!result.ok || waiting.length === 0) return result;
  return ok({ ...result.value, waiting: `${waiting.join(", ")}: ${WAITS_NOTE}` });
}
