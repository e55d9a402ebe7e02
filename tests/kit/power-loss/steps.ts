// The transactions that `writer.ts` executes one after the other, and the contents of the store after each.
// They depend only on the seed and the number, so that a reader of the store knows the expected contents.

import { dice } from "../dice.ts";

const LANES = 6;

export interface PowerStep {
  /** Key of the session to which the transaction writes. */
  readonly key: string;
  /** The new transcript id, if the transaction first resets or deletes the session. */
  readonly renewedAs?: string;
  readonly deletes: boolean;
  /** Ids and lengths of the messages that the transaction appends. */
  readonly messages: readonly { readonly id: string; readonly chars: number }[];
}

const keyOf = (lane: number): string => `agent:main:chat:${lane}`;

/** Returns the transaction with this number, from 1. The first ones create the sessions. */
export function powerStep(seed: string, number: number): PowerStep {
  const luck = dice(`${seed} step ${number}`);
  const lane = number <= LANES ? number : 1 + luck.below(LANES);
  const renewed = number <= LANES || luck.chance(0.04);
  const deletes = luck.chance(0.5);
  // Most messages are small; some fill many pages of the log.
  const messages = Array.from({ length: 1 + luck.below(5) }, (_, at) => {
    const chars = luck.chance(0.1) ? 5_000 + luck.below(60_000) : 20 + luck.below(600);
    return { id: `m${number}-${at}`, chars };
  });
  return { key: keyOf(lane), deletes, ...(renewed ? { renewedAs: `s${lane}-${number}` } : {}), messages };
}

/**
 * Returns the contents of the store after `count` transactions: the message ids of each transcript, in
 * order.
 */
export function powerState(seed: string, count: number): Map<string, string[]> {
  const current = new Map<string, string>();
  /** The transcripts of each session since the session was last deleted. */
  const all = new Map<string, string[]>();
  const state = new Map<string, string[]>();
  for (let number = 1; number <= count; number += 1) {
    const { key, renewedAs, deletes, messages } = powerStep(seed, number);
    if (renewedAs !== undefined) {
      if (deletes) for (const sessionId of all.get(key) ?? []) state.delete(sessionId);
      all.set(key, [...(deletes ? [] : (all.get(key) ?? [])), renewedAs]);
      current.set(key, renewedAs);
      state.set(renewedAs, []);
    }
    state.get(current.get(key) ?? "")?.push(...messages.map((message) => message.id));
  }
  return state;
}
