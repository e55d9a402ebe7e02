// Writes the record of a chain that has only its first message, so that it can be played like a recorded one.

import { keyRulesOf } from "../../../access/access.ts";
import { type UserMessage, ZERO_USAGE } from "../../../core/shapes/message.ts";
import type { ChainRecord, FirstMessage } from "../../../core/shapes/record/chain.ts";
import type { Run } from "../../../core/shapes/run.ts";
import { mainKeyOf } from "../../../core/shapes/session-key.ts";

const ID = "first-message";

/** Returns a record in which the agent's main session got the message at this time, and no model answered. */
export function draftOf({ settings, agentId, message: text }: FirstMessage, at: number): ChainRecord {
  const sessionKey = mainKeyOf(agentId, keyRulesOf(settings));
  const run: Run = {
    ...{ runId: ID, sessionKey, sessionId: ID, agentId, laneSeq: 1, kind: "turn", state: "ok" },
    ...{ input: { text }, chainId: ID, hop: 0, attempt: 1, crashes: 0 },
    ...{ acceptedAt: at, startedAt: at, endedAt: at, timeoutMs: 0, usage: ZERO_USAGE },
  };
  const entry: UserMessage = { id: ID, role: "user", content: [{ type: "text", text }], timestamp: at };
  const nothing = { sessions: [], flows: [], waits: [], refusals: [], deliveries: [], revisions: [] };
  const entries = [{ sessionKey, at, runId: ID, entry }];
  return { program: "", chainId: ID, runs: [run], entries, ...nothing };
}
