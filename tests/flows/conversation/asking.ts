// Two main sessions for most tests of sends: `main` asks, `research` answers.

import { endOf } from "../../kit/engine/engine.ts";
import type { openFlowApp, Play } from "../../kit/engine/flow-app.ts";

export const MAIN = "agent:main:main";
export const RESEARCH = "agent:research:main";
export const turns = (maxPingPongTurns: number) => ({
  session: { agentToAgent: { maxPingPongTurns, maxHops: 16, maxChainRuns: 200 } },
});

/** Returns a turn in which `main` asks `research` and answers with the result of `sessions_send` as JSON. */
export const asks =
  (question: string, timeoutSeconds = 30): Play =>
  async (actor) =>
    actor.step === "message"
      ? JSON.stringify(await actor.send(RESEARCH, question, timeoutSeconds))
      : "REPLY_SKIP";

export async function resultOf(
  app: Awaited<ReturnType<typeof openFlowApp>>,
): Promise<Record<string, unknown>> {
  const run = await app.tell(MAIN, "go");
  const ended = await endOf(app.engine, run.runId);
  return JSON.parse(ended.reply ?? "{}");
}
