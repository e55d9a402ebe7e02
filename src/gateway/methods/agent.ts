// Owns the methods of programs: run an agent and get its result, wait for a run, add a note to a session,
// send a text to a person.
// The reported end of a run comes from its row, never from its text (I12).

import { chosenAgent, keyRulesOf } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { createGate } from "../../access/token.ts";
import type { WaitAnswer } from "../../contract/methods/talk.ts";
import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { WAIT_DEFAULT_MS } from "../../contract/protocol.ts";
import { optional } from "../../core/optional.ts";
import { isGuest } from "../../core/rules/prompt/memory.ts";
import { isSilent } from "../../core/rules/turn-rules.ts";
import { type Code, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { endCodeOf, isEnded, type Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { mainKeyOf } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { Engine } from "../../engine/engine.ts";
import { sendDirect } from "../../flows/conversation/direct.ts";
import { answerPlace, destinationOf } from "../../flows/delivery/destination.ts";
import { sendText } from "../../flows/delivery/outbox.ts";
import { type Opening, openingOf, openSession } from "../../flows/session/open.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import { acceptWake } from "../../triggers/wake.ts";
import { keyOwnerOf } from "../auth.ts";
import { type BasicDeps, type CallContext, type Methods, onlyFresh } from "../call.ts";
import { readImages } from "./attachments.ts";
import { checkThinking, runTimeout } from "./chat.ts";
import { splitModel } from "./session-row.ts";

const WAIT_MAX_MS = 86_400_000;

/**
 * Returns the session that the params name by key, id, label or agent. Without these params, returns the main
 * session of the default agent.
 */
async function targetOf(ctx: CallContext, params: ParamsOf<"agent">): Promise<Result<Opening>> {
  const { sessionKey, sessionId, label, agentId } = params;
  const resolve = async (target: Parameters<typeof resolveSession>[3]): Promise<Result<Opening>> => {
    const found = await resolveSession(ctx.access, ctx.viewer, "send", target);
    return found.ok ? ok(openingOf(found.value, true)) : found;
  };
  const named = sessionKey ?? sessionId;
  if (named !== undefined) {
    const found = await openSession(ctx.deps, ctx.viewer, named);
    return found.ok ? ofAgent(found.value, found.value.session, agentId) : found;
  }
  if (label !== undefined) return resolve({ label, ...optional({ agentId }) });
  const main = mainOf(ctx.deps.settings, agentId);
  return main.ok ? resolve({ sessionKey: main.value }) : main;
}

/** Returns `found` if its session belongs to the agent that the params name, or if they name none. */
function ofAgent<T>(found: T, session: Session, agentId: string | undefined): Result<T> {
  if (agentId === undefined || session.agentId === agentId.trim().toLowerCase()) return ok(found);
  return fail(
    "invalid_argument",
    `session ${session.key} belongs to agent "${session.agentId}": omit agentId, or give that agent's id`,
  );
}

/** Returns a name of the main session of this agent, or of the default agent. */
function mainOf(settings: Settings, agentId: string | undefined): Result<string> {
  if (agentId === undefined) return ok("main");
  const chosen = chosenAgent(settings, agentId);
  return chosen.ok ? ok(mainKeyOf(chosen.value, keyRulesOf(settings))) : chosen;
}

async function wake(ctx: CallContext, params: ParamsOf<"wake">): Promise<Result<PayloadOf<"wake">>> {
  const { text, mode = "now", sessionKey, agentId } = params;
  const key = sessionKey === undefined ? mainOf(ctx.deps.settings, agentId) : ok(sessionKey);
  if (!key.ok) return key;
  const found = await resolveSession(ctx.access, ctx.viewer, "send", { sessionKey: key.value });
  if (!found.ok) return found;
  const target = ofAgent(found.value.key, found.value, agentId);
  if (!target.ok) return target;
  const answer = ({ runId, sessionKey }: Run) => ({ ok: true, runId, sessionKey }) as const;
  const woken = await acceptWake(ctx.deps, {
    text,
    mode,
    sessionKey: target.value,
    guest: isGuest(ctx.viewer),
    async also(unit, run) {
      await ctx.remember(unit, answer(run));
      return ok(undefined);
    },
  });
  return woken.ok ? ok(answer(woken.value)) : woken;
}

async function start(ctx: CallContext, params: ParamsOf<"agent">): Promise<Result<PayloadOf<"agent">>> {
  const { message, attachments, extraSystemPrompt, timeout, idempotencyKey } = params;
  const images = readImages(attachments);
  if (!images.ok) return images;
  const thinking = checkThinking(params.thinking);
  if (!thinking.ok) return thinking;
  if (message.trim() === "") return fail("invalid_argument", "message must not be empty");
  const found = await targetOf(ctx, params);
  if (!found.ok) return found;
  const { session, before } = found.value;
  const { deliver, channel, to, accountId, threadId } = params;
  const named = { deliver, channel, to, accountId, threadId };
  const place = await answerPlace(ctx.access, ctx.viewer, session, named);
  if (!place.ok) return place;
  const answer = ({ runId, acceptedAt, sessionKey }: Run) => ({
    runId,
    status: "accepted" as const,
    acceptedAt,
    sessionKey,
  });
  const accepted = await sendDirect(ctx.deps, {
    session,
    before,
    text: message,
    images: images.value,
    runId: idempotencyKey,
    askedBy: keyOwnerOf(ctx.caller),
    guest: isGuest(ctx.viewer),
    ...thinking.value,
    ...place.value,
    ...runTimeout(timeout === undefined ? undefined : timeout * 1000),
    ...optional({ extraContext: extraSystemPrompt }),
    remember: async (unit, { run, fresh }) => {
      if (fresh) await ctx.remember(unit, answer(run));
    },
  });
  const begun = onlyFresh(accepted);
  return begun.ok ? ok(answer(begun.value.run)) : begun;
}

/** The result of a run: the second answer of `agent`, after the one that accepts the run. */
type RunSummary = {
  readonly runId: string;
  readonly summary: string;
  readonly result: {
    readonly payloads: readonly { readonly text: string }[];
    readonly text?: string;
    readonly meta: {
      readonly durationMs: number;
      readonly agentMeta: Pick<Run, "sessionId" | "usage"> & {
        readonly provider: string | null;
        readonly model: string | null;
      };
    };
  };
} & (
  | { readonly status: "ok" }
  | { readonly status: "error"; readonly runStatus: Run["state"]; readonly code?: Code }
);

/** Returns the result of a run in the protocol's form. A run without a reply has no payloads. */
async function summaryOf({ deps }: CallContext, run: Run): Promise<RunSummary> {
  const { redactor } = deps.world;
  const { runId, state, startedAt, endedAt, usage } = run;
  const text = run.reply === undefined || isSilent(run.reply) ? undefined : await redactor.whole(run.reply);
  const { modelProvider: provider, model } = splitModel(run.model ?? "");
  const result = {
    payloads: text === undefined ? [] : [{ text }],
    ...optional({ text }),
    meta: {
      durationMs: (endedAt ?? 0) - (startedAt ?? endedAt ?? 0),
      agentMeta: { sessionId: run.sessionId, provider, model, usage },
    },
  };
  if (state === "ok") return { runId, status: "ok", summary: "completed", result };
  return {
    runId,
    status: "error",
    summary: redactor.mask(run.error ?? `the run ended: ${state}`),
    runStatus: state,
    ...optional({ code: run.code }),
    result,
  };
}

/** Returns the run once it has ended, without a timeout, or undefined if the signal was aborted first. */
export async function untilEnded(
  engine: Engine,
  runId: string,
  signal: AbortSignal,
): Promise<Result<Run> | undefined> {
  while (!signal.aborted) {
    const run = await engine.waitForRun(runId, engine.now() + WAIT_MAX_MS, signal);
    if (run === undefined) return fail("run_not_found", `run "${runId}" no longer exists`);
    if (isEnded(run.state)) return ok(run);
  }
  return undefined;
}

async function followRun(ctx: CallContext, answer: unknown): Promise<Result<unknown>> {
  const { runId } = answer as PayloadOf<"agent">;
  const run = await untilEnded(ctx.deps.engine, runId, ctx.signal);
  if (run !== undefined) return run.ok ? ok(await summaryOf(ctx, run.value)) : run;
  return fail("shutting_down", "the connection ended before the run; agent.wait returns its result");
}

function waitAnswer({ deps }: CallContext, run: Run): WaitAnswer {
  const { runId, state, startedAt, endedAt } = run;
  const base = { runId, runStatus: state, ...optional({ startedAt, endedAt }) };
  if (!isEnded(state)) return { ...base, status: "timeout" };
  if (state === "ok") return { ...base, status: "ok" };
  const error = deps.world.redactor.mask(run.error ?? `the run ended: ${state}`);
  const code = endCodeOf(run);
  return { ...base, status: "error", error, ...optional({ code }) };
}

async function wait(ctx: CallContext, params: ParamsOf<"agent.wait">): Promise<Result<WaitAnswer>> {
  const { runId, timeoutMs } = params;
  const { engine, settings } = ctx.deps;
  // Return the same failure for an unknown run and for a run that the token doesn't cover.
  const missing = fail("run_not_found", `there is no run ${JSON.stringify(runId)}`, {
    hint: "Use the runId that chat.send or agent returned.",
  });
  const known = await getRun(ctx.access.db, runId);
  if (known === undefined || !createGate(settings, ctx.caller, "status")(known.sessionKey)) return missing;
  const waitMs = Math.min(timeoutMs ?? WAIT_DEFAULT_MS, WAIT_MAX_MS);
  const run = await engine.waitForRun(runId, engine.now() + waitMs, ctx.signal);
  return run === undefined ? missing : ok(waitAnswer(ctx, run));
}

async function send(
  ctx: CallContext<BasicDeps>,
  params: ParamsOf<"send">,
): Promise<Result<PayloadOf<"send">>> {
  const { message } = params;
  if (message.trim() === "") return fail("invalid_argument", "message must not be empty");
  const { to, sessionKey, channel, accountId, threadId } = params;
  const named = { to, sessionKey, channel, accountId, threadId };
  const target = await destinationOf(ctx.access, ctx.viewer, named);
  if (!target.ok) return target;
  const { route, session } = target.value;
  const answer = (id: string) => ({
    messageId: id,
    channel: route.channel,
    status: "queued" as const,
    sessionKey: session.key,
  });
  const sent = await sendText(ctx.deps, {
    session,
    route,
    text: message,
    remember: (unit, id) => ctx.remember(unit, answer(id)),
  });
  return sent.ok ? ok(answer(sent.value.id)) : sent;
}

export const agentMethods: Methods<"agent" | "agent.wait" | "send" | "wake", BasicDeps> = {
  wake: { handle: wake },
  agent: { handle: start, follow: followRun },
  "agent.wait": { handle: wait },
  send: { handle: send },
};
