// Fills a chain with many messages to many sessions, of one agent or of several.

import { insertRun } from "../../../src/store/queries/runs/runs.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import type { Store } from "../../../src/store/sql.ts";
import { sampleRun, sampleSession } from "../../store/samples.ts";

/** Adds messages from main to many sessions to a chain, from the time `at` on. */
export async function fill(
  store: Store,
  at: number,
  chainId: string,
  { steps, sessions, agents = 1 }: Record<"steps" | "sessions", number> & { readonly agents?: number },
): Promise<void> {
  const placeOf = (n: number) => {
    const agentId = agents === 1 ? "research" : `helper-${n % agents}`;
    return { sessionKey: `agent:${agentId}:room-${n % sessions}`, agentId };
  };
  await store.transaction(async (tx) => {
    for (let n = 0; n < sessions; n++) {
      const { sessionKey: key, agentId } = placeOf(n);
      await insertSession(tx, sampleSession({ key, sessionId: `of room ${n}`, agentId }));
    }
  });
  for (let first = 0; first < steps; first += 1_000)
    await store.transaction(async (tx) => {
      for (let n = first; n < Math.min(steps, first + 1_000); n++) {
        const provenance = {
          ...{
            kind: "inter_session" as const,
            sourceSessionKey: "agent:main:main",
            sourceTool: "sessions_send",
          },
          ...{ chainId, hop: 1 },
        } as const;
        const times = { acceptedAt: at + n * 40, startedAt: at + n * 40 + 3, endedAt: at + n * 40 + 900 };
        const input = { text: `message ${n}: what do you think of the list of open points?`, provenance };
        const run = {
          runId: `r-${n}`,
          laneSeq: 1_000 + n,
          chainId,
          state: "ok" as const,
          ...times,
          ...placeOf(n % sessions),
        };
        await insertRun(tx, sampleRun({ ...run, input }));
      }
    });
}
