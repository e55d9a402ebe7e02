// People, agents and a channel for randomized tests. Agents send to each other, and people act on the
// sessions. Used for one process in simulated time, and for several processes in real time.

import type { DeliveryOutcome } from "../../../src/channels/channel.ts";
import { deleteSession, resetSession } from "../../../src/flows/session/lifecycle.ts";
import { getSession, insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import type { Store } from "../../../src/store/sql.ts";
import { type Dice, dice } from "../dice.ts";
import { whole } from "../live-text.ts";
import { assistantText, sessionRow } from "./engine.ts";
import type { Actor, FlowApp, FlowAppOptions, Play } from "./flow-app.ts";

const MAIN = ["agent:main:main", "agent:research:main", "agent:writer:main"];
const CHATS = ["agent:main:chat:one", "agent:research:chat:two"];
/** Keys of all sessions of the test. */
export const KEYS: readonly string[] = [...MAIN, ...CHATS];
export const LIMITS = { maxPingPongTurns: 3, maxHops: 5, maxChainRuns: 14 };

/** Creates the chat sessions. The main sessions are created when the app starts. */
export async function makeChats(store: Store): Promise<void> {
  await store.transaction(async (tx) => {
    for (const key of CHATS) {
      const agentId = key.split(":")[1] ?? "main";
      await insertSession(tx, sessionRow(key, { agentId, sessionId: `id-${agentId}` }));
    }
  });
}

export interface Talk {
  readonly seed: number;
  /** Random choices of the people and of the channel. */
  readonly dice: Dice;
  /** Ids of the runs of which a caller knows that they were accepted. */
  readonly accepted: string[];
  /** For each session, the lane numbers of its turns, in the order in which the turns began. */
  readonly begun: Map<string, number[]>;
  /** Times, in seconds, that an agent may wait for another one. */
  readonly waitSeconds: readonly number[];
  pause(ms: number, signal?: AbortSignal): Promise<void>;
  /** Records the result of a send, under the id of its tool call. */
  told(callId: string, result: Record<string, unknown>): void;
}

/** Sends to another session with a stored tool call. Every attempt of the run makes the same call. */
async function askOther(talk: Talk, actor: Actor, luck: Dice, name: string): Promise<void> {
  const { handle } = actor;
  const { runId } = handle.run;
  const to = luck.of(KEYS);
  const result = await actor.send(to, `${name} of ${runId}`, luck.of(talk.waitSeconds), name);
  talk.told(`${runId}:${name}`, result);
  const text = [{ type: "text" as const, text: JSON.stringify(result) }];
  const id = `${name}-${runId}`;
  const facts = { role: "toolResult" as const, toolCallId: id, toolName: "sessions_send", isError: false };
  await handle.append({ ...facts, id: `result-${id}`, content: text, timestamp: 1 });
}

/** Plays a turn. Its choices depend only on seed and run id, so a later attempt makes the same choices. */
async function act(talk: Talk, actor: Actor): Promise<string> {
  const { handle } = actor;
  const { runId } = handle.run;
  const luck = dice(`${talk.seed} ${runId}`);
  const asks = luck.chance(actor.step === "message" ? 0.6 : 0.3) ? 1 + luck.below(2) : 0;
  if (luck.chance(0.4)) await talk.pause(luck.below(60), luck.chance(0.7) ? handle.signal : undefined);
  if (asks > 0) {
    const names = Array.from({ length: asks }, (_, at) => `call${at}`);
    const content = names.map((name) => {
      return { type: "toolCall" as const, id: `${name}-${runId}`, name: "sessions_send", arguments: {} };
    });
    await handle.append({ ...assistantText(`asks-${runId}`, ""), content, stopReason: "toolUse" });
    await Promise.all(names.map((name) => askOther(talk, actor, luck, name)));
  }
  if (luck.chance(0.12)) throw new Error("the model failed");
  const text = luck.chance(0.2) ? luck.of(["REPLY_SKIP", "ANNOUNCE_SKIP", ""]) : `words of ${runId}`;
  handle.text(whole(text));
  if (luck.chance(0.3)) await talk.pause(luck.below(40), handle.signal);
  return text;
}

function channelOf({ dice: roll }: Talk): () => DeliveryOutcome {
  return () => {
    const what = roll.below(10);
    if (what === 0) return { kind: "refused", error: "no" };
    if (what === 1) return { kind: "retry", error: "later", afterMs: 10 };
    if (what === 2) throw new Error("the channel broke");
    return { kind: "sent" };
  };
}

/** Returns the options of an app in which agents act at random. `around` wraps each turn. */
export function cast(
  talk: Talk,
  around: (actor: Actor, act: () => Promise<string>) => Promise<string> = (_, act) => act(),
): Pick<FlowAppOptions, "plays" | "choices" | "channel"> {
  const play: Play = (actor) => {
    const { sessionKey, laneSeq } = actor.handle.run;
    const begun = talk.begun.get(sessionKey) ?? [];
    talk.begun.set(sessionKey, begun);
    begun.push(laneSeq);
    return around(actor, () => act(talk, actor));
  };
  return {
    plays: Object.fromEntries(KEYS.map((key) => [key, play])),
    choices: { session: { agentToAgent: LIMITS } },
    channel: channelOf(talk),
  };
}

/**
 * Performs one random action of a person. Ignores refusals by the store and refusals for missing sessions.
 */
export async function doSomething({ dice: roll, accepted }: Talk, app: FlowApp): Promise<void> {
  const key = roll.of(KEYS);
  const session = await getSession(app.store.db, key);
  if (session === undefined) return;
  const facts = {
    engine: app.engine,
    settings: app.settings,
    dropTranscript: async () => {},
  };
  const what = roll.below(20);
  if (what < 10) {
    const timeoutMs = roll.chance(0.2) ? roll.below(50) + 1 : 0;
    accepted.push((await app.tell(key, "from a person", { timeoutMs })).runId);
  } else if (what < 12) {
    // Not awaited, because the process may crash before it answers.
    void app.send(key, roll.of(KEYS), "from an operator", roll.of([0, 0.02, 1])).catch(() => undefined);
  } else if (what < 15) {
    const runs = await app.runs(key);
    const run = runs.length === 0 ? undefined : roll.of(runs.slice(-4));
    if (run !== undefined) await app.engine.abort({ sessionKey: key, runId: run.runId });
  } else if (what < 17) await app.engine.abort({ sessionKey: key });
  else if (what < 18) await resetSession(facts, session);
  else if (what < 19 && roll.chance(0.3)) {
    await deleteSession(facts, session, { deleteTranscript: roll.chance(0.5) });
  } else await app.route(key);
}
