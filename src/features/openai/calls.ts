// Finds the runs whose calls a request answers. A call's id, as the client knows it, names its place in the
// transcript, so its result gets to that place, whichever run brings it and whatever was said meanwhile.
// OC1: the results of a run's calls come together, and continue that run once: a repeated request with the
//      same results gets the run of the first one. If that run failed, one other run continues it, and so on.
// OC2: only the token that got the calls can answer them.

import { optional } from "../../core/optional.ts";
import { clientCalls } from "../../core/rules/client-tools.ts";
import { spokenText } from "../../core/rules/turn-rules.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { PlacedCall } from "../../core/shapes/message.ts";
import { type ClientResult, isEnded, PLEASE_CONTINUE, type Run } from "../../core/shapes/run.ts";
import { ownRun } from "../../flows/session/client-session.ts";
import { keyOwnerOf } from "../../gateway/auth.ts";
import type { CallContext } from "../../gateway/call.ts";
import { getRunOfCall } from "../../store/queries/runs/runs.ts";
import { readRun, runOfMessage } from "../../store/queries/transcripts/transcripts.ts";
import type { Turn } from "./content.ts";
import type { AgentRequest } from "./request.ts";
import { resultOf, type SeedMessage } from "./sessions.ts";

const CALL_ID = /^(?:call|fc)_([\w-]+)_(\d{1,4})$/;

/** Returns the part of a call's id that names its place. */
export function placeName({ messageId, index }: Pick<PlacedCall, "messageId" | "index">): string {
  return `${messageId}_${index}`;
}

function messageOf(id: string): string | undefined {
  return CALL_ID.exec(id)?.[1];
}

/** The results of all calls that a run left to its client. */
export interface Answered {
  readonly run: Run;
  readonly results: readonly ClientResult[];
  /** The stable id of the run that begins with these results, or continues after the failed `next`. */
  readonly callId: string;
  /** The last run that began with these results, if there is one. */
  readonly next?: Run;
}

/** Returns a run that the caller requested and may read. */
async function runFor(ctx: CallContext, runId: string | undefined): Promise<Run | undefined> {
  if (runId === undefined) return undefined;
  const found = await ownRun(ctx.deps, ctx.viewer, { runId, askedBy: keyOwnerOf(ctx.caller) });
  return found.ok ? found.value : undefined;
}

/** Returns what the results of a request answer, or undefined if they answer no calls of a run. */
export async function answeredBy(
  ctx: CallContext,
  request: AgentRequest,
): Promise<Result<Answered | undefined>> {
  const { db } = ctx.deps.engine.store;
  const messageId = messageOf(request.results.at(-1)?.callId ?? "");
  if (messageId === undefined) return ok(undefined);
  const run = await runFor(ctx, await runOfMessage(db, messageId));
  if (run === undefined) return ok(undefined);
  const calls = clientCalls(run, await readRun(db, run.runId));
  if (calls[0]?.messageId !== messageId) return ok(undefined);
  const results: ClientResult[] = [];
  const givenById = new Map(request.everyResult.map((turn) => [turn.callId, turn]));
  for (const placed of calls) {
    const id = `call_${placeName(placed)}`;
    const given = givenById.get(id);
    if (given === undefined) return missing(request, `the result of call ${id} is missing`);
    results.push(resultOf(placed, given));
  }
  const other = request.results.find(({ callId = "" }) => messageOf(callId) !== messageId);
  if (other !== undefined) return unknownCall(other);
  let callId = `client ${messageId}`;
  let next = await getRunOfCall(db, callId);
  while (next !== undefined && hasFailed(next)) {
    callId = `client ${messageId} after ${next.runId}`;
    const following = await getRunOfCall(db, callId);
    if (following === undefined) break;
    next = following;
  }
  return ok({ run, results, callId, ...optional({ next }) });
}

function missing({ results: [first] }: AgentRequest, why: string): ReturnType<typeof fail> {
  return fail("invalid_argument", `${why}: send the results of all calls of an answer together`, {
    details: { param: first?.where },
  });
}

/** Refuses a result whose call is unknown. */
export function unknownCall({ callId = "", where }: Turn): ReturnType<typeof fail> {
  const text = `${where}: there is no open call ${JSON.stringify(callId)} in this conversation`;
  return fail("invalid_argument", text, {
    hint: "Send results with the ids of the calls in the last answer, and the same session.",
    details: { param: where },
  });
}

export function hasResults({ input }: Run, results: readonly ClientResult[]): boolean {
  return JSON.stringify(results) === JSON.stringify(input.results);
}

/** Returns whether a run got the message of a request after the results. */
export function hasMessage({ input }: Run, { text, images }: AgentRequest): boolean {
  const isText = input.text === text || (text === "" && input.text === PLEASE_CONTINUE);
  return isText && JSON.stringify(images) === JSON.stringify(input.images ?? []);
}

export function hasFailed({ state }: Run): boolean {
  return isEnded(state) && state !== "ok";
}

/** Returns the message that a reference stands for: the text of an earlier response, or one of its calls. */
async function resolve(ctx: CallContext, turn: Turn, reference: string): Promise<Result<Turn>> {
  const { db } = ctx.deps.engine.store;
  const messageId = messageOf(reference);
  const runId = messageId === undefined ? reference.replace(/^msg_/, "") : await runOfMessage(db, messageId);
  const own = await runFor(ctx, runId);
  const run = own?.forgottenAt === undefined ? own : undefined;
  const call =
    run && clientCalls(run, await readRun(db, run.runId)).find((one) => `fc_${placeName(one)}` === reference);
  if (call !== undefined) {
    const { name, arguments: given } = call.call;
    return ok({ ...turn, calls: [{ id: `call_${placeName(call)}`, name, arguments: given }] });
  }
  if (run !== undefined && messageId === undefined) return ok({ ...turn, text: spokenText(run.reply ?? "") });
  return fail("invalid_argument", `${turn.where}: there is no item ${JSON.stringify(reference)}`, {
    hint: "Send the item itself.",
    details: { param: turn.where },
  });
}

/** Pictures and thoughts of an earlier response. */
const LEFT_OUT = /^(?:ig|rs)_/;

/** Gives the messages of a request ids, resolves references, and joins calls to the text before them. */
export async function seedOf(ctx: CallContext, turns: readonly Turn[]): Promise<Result<SeedMessage[]>> {
  const seed: SeedMessage[] = [];
  const callIds = new Set<string | undefined>();
  for (const turn of turns) {
    const { reference } = turn;
    if (reference !== undefined && LEFT_OUT.test(reference)) continue;
    const read = reference === undefined ? ok(turn) : await resolve(ctx, turn, reference);
    if (!read.ok) return read;
    const { where: _, reference: __, ...said } = read.value;
    const { role, callId, text, calls = [] } = said;
    if (role === "tool" && !callIds.has(callId)) return unknownCall(turn);
    for (const { id } of calls) callIds.add(id);
    const before = seed.at(-1);
    const joins = before?.role === "assistant" && role === "assistant" && text.trim() === "";
    if (joins) seed[seed.length - 1] = { ...before, calls: [...(before.calls ?? []), ...calls] };
    else seed.push({ ...said, id: ctx.deps.engine.newId() });
  }
  return ok(seed);
}
