// Owns the methods of a chat window: send a message, stop a run, add an operator's note. history.ts reads the
// transcript.

import { resolveSession } from "../../access/resolve.ts";
import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { optional } from "../../core/optional.ts";
import { isGuest } from "../../core/rules/prompt/memory.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { WEBCHAT } from "../../core/shapes/route.ts";
import type { Run } from "../../core/shapes/run.ts";
import { THINKING_LEVELS, thinkingNamed } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import { sendDirect } from "../../flows/conversation/direct.ts";
import { injectMessage } from "../../flows/session/lifecycle.ts";
import { openSession } from "../../flows/session/open.ts";
import { keyOwnerOf } from "../auth.ts";
import { type CallContext, commitAnswer, type Methods, onlyFresh } from "../call.ts";
import { readImages } from "./attachments.ts";
import { answerCommand, type CommandDeps, commandOf } from "./commands.ts";

/** Maximum timeout of a run; a longer one is reduced to this. */
const TIMEOUT_MAX_MS = 7 * 86_400_000;

export function runTimeout(ms: number | undefined): { timeoutMs?: number } {
  return ms === undefined ? {} : { timeoutMs: Math.min(ms, TIMEOUT_MAX_MS) };
}

export function checkThinking(thinking: string | undefined): Result<{ thinking?: string }> {
  if (thinking === undefined) return ok({});
  const level = thinkingNamed(thinking);
  if (level !== undefined) return ok({ thinking: level });
  const shown = quoted(thinking, 40);
  return fail("invalid_thinking", `thinking ${shown} is not valid; valid: ${THINKING_LEVELS.join(", ")}`);
}

async function send(
  ctx: CallContext<CommandDeps>,
  params: ParamsOf<"chat.send">,
): Promise<Result<PayloadOf<"chat.send">>> {
  const { sessionKey, message, attachments, timeoutMs, idempotencyKey } = params;
  const images = readImages(attachments);
  if (!images.ok) return images;
  const thinking = checkThinking(params.thinking);
  if (!thinking.ok) return thinking;
  if (message.trim() === "" && images.value.length === 0) {
    return fail("invalid_argument", "message must not be empty");
  }
  const found = await openSession(ctx.deps, ctx.viewer, sessionKey);
  if (!found.ok) return found;
  const { session, before } = found.value;
  const command = images.value.length === 0 ? commandOf(ctx, message) : undefined;
  if (command !== undefined) return answerCommand(ctx, found.value, { ...command, runId: idempotencyKey });
  const answer = ({ runId }: Run) => ({ runId, status: "started" }) as const;
  const accepted = await sendDirect(ctx.deps, {
    session,
    before,
    text: message,
    images: images.value,
    runId: idempotencyKey,
    askedBy: keyOwnerOf(ctx.caller),
    guest: isGuest(ctx.viewer),
    route: { channel: WEBCHAT, to: session.key },
    mode: params.steer === true ? "steer" : "followup",
    ...thinking.value,
    ...runTimeout(timeoutMs),
    remember: async (unit, { run, fresh }) => {
      if (fresh) await ctx.remember(unit, answer(run));
    },
  });
  const begun = onlyFresh(accepted);
  return begun.ok ? ok(answer(begun.value.run)) : begun;
}

async function abort(
  ctx: CallContext,
  params: ParamsOf<"chat.abort">,
): Promise<Result<PayloadOf<"chat.abort">>> {
  const { sessionKey, runId } = params;
  const found = await resolveSession(ctx.access, ctx.viewer, "send", { sessionKey });
  if (!found.ok) return found;
  const request = { sessionKey: found.value.key, ...optional({ runId }) };
  return commitAnswer(ctx, async (unit) => {
    const { aborted, runIds } = await ctx.deps.engine.abortIn(unit, request);
    return ok({ ok: true, aborted, runIds });
  });
}

async function inject(
  ctx: CallContext,
  params: ParamsOf<"chat.inject">,
): Promise<Result<PayloadOf<"chat.inject">>> {
  const { sessionKey, message, label, idempotencyKey } = params;
  const found = await resolveSession(ctx.access, ctx.viewer, "send", { sessionKey });
  if (!found.ok) return found;
  const answer = ({ runId, sessionKey }: Run) => ({ ok: true, runId, sessionKey }) as const;
  const injected = await injectMessage(ctx.deps, found.value, {
    message,
    ...optional({ label }),
    ...(idempotencyKey === undefined ? {} : { runId: idempotencyKey, askedBy: keyOwnerOf(ctx.caller) }),
    also: (unit, run) => ctx.remember(unit, answer(run)),
  });
  const begun = onlyFresh(injected);
  return begun.ok ? ok(answer(begun.value.run)) : begun;
}

export const chatMethods: Methods<"chat.send" | "chat.abort" | "chat.inject", CommandDeps> = {
  "chat.send": { handle: send },
  "chat.abort": { handle: abort },
  "chat.inject": { handle: inject },
};
