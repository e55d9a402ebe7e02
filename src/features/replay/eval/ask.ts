// Asks a model one question outside of any session, such as a judgement about a replay.

import { type ModelOutcome, resolveModel, usageOf } from "../../../agent/model/model.ts";
import { openModelPort } from "../../../agent/model/port.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { textOf } from "../../../core/shapes/message.ts";
import type { ProviderSettings } from "../../../core/shapes/settings/settings.ts";
import { timeLimit } from "../../../world/pause.ts";
import { silenced, type World } from "../../../world.ts";

const ANSWER_MAX_BYTES = 64 * 1024;
const ANSWER_MS_MAX = 120_000;

function errorOf(outcome: ModelOutcome): string {
  if (outcome.kind === "aborted") return `no answer within ${ANSWER_MS_MAX / 1000} s`;
  return outcome.kind === "message" ? "" : outcome.error;
}

export async function askModel(
  world: World,
  providers: readonly ProviderSettings[],
  { model: ref, system, text }: { model: string; system: string; text: string },
): Promise<Result<{ text: string; cost: number }>> {
  const model = resolveModel(providers, ref);
  if (!model.ok) return model;
  using limit = timeLimit(world.clock, ANSWER_MS_MAX);
  const id = world.ids.uuid();
  const content = [{ type: "text" as const, text }];
  const outcome = await openModelPort(silenced(world)).call(
    {
      ...{ model: model.value, system, tools: [], thinking: "off", sessionId: id },
      entries: [{ id, role: "user", content, timestamp: world.clock.now() }],
      limits: { maxAnswerBytes: ANSWER_MAX_BYTES, maxAnswerToolCalls: 0 },
    },
    () => {},
    limit.signal,
  );
  if (outcome.kind !== "message") return fail("run_failed", errorOf(outcome));
  const { message } = outcome;
  return ok({ text: textOf({ ...message, id }), cost: usageOf(outcome)?.cost.total ?? 0 });
}
