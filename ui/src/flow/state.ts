// Owns what the flow view has chosen and how it stays up to date: window of time, filter, readings.
// FL1: what moves is read again, a few times a second at most, and only what it concerns.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ChainRow } from "../../../src/core/chain-step.ts";
import type { AgentEvent } from "../../../src/gateway/protocol.ts";
import { batched } from "../clock.ts";
import { ask, on } from "../gateway.ts";
import { shortKey } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";

/** How long after news it is read; more of it in between costs nothing. */
const SETTLE_MS = 300;
const CHAINS_MAX = 100;

export const WINDOWS = [
  { minutes: 15, name: "15 min" },
  { minutes: 60, name: "1 hour" },
  { minutes: 1_440, name: "24 hours" },
] as const;

export interface Filter {
  readonly from: string;
  /** Absent: every chain in which `from` takes part. */
  readonly to?: string;
}

export const minutes = signal<number>(60);
export const filter = signal<Filter | undefined>(undefined);

/** What sessions are called, as far as the list of chains says. */
const names = signal<Readonly<Record<string, string>>>({});

/** A session's name in the list and the overview. */
export function nameOf(sessionKey: string): string {
  return names.value[sessionKey] ?? shortKey(sessionKey);
}

/** Whether a chain has what the reader looks for. */
export function fits(chain: ChainRow, wanted: Filter | undefined): boolean {
  if (wanted === undefined) return true;
  if (wanted.to === undefined)
    return (
      chain.sessions.includes(wanted.from) ||
      chain.talks.some(({ from, to }) => from === wanted.from || to === wanted.from)
    );
  return chain.talks.some(({ from, to }) => from === wanted.from && to === wanted.to);
}

/** Whether an event says that a chain moved. */
function moves(event: AgentEvent): boolean {
  return event.stream === "lifecycle" || event.stream === "flow";
}

/** Calls `read` some time after events for which `concerns` holds. */
function useNews(concerns: (event: AgentEvent) => boolean, read: () => void): void {
  const latest = useRef({ concerns, read });
  latest.current = { concerns, read };
  useEffect(() => {
    const soon = batched(SETTLE_MS, () => latest.current.read());
    return on("agent", (event) => {
      if (moves(event) && latest.current.concerns(event)) soon();
    });
  }, []);
}

export function useChains() {
  const reading = useReading(`chains ${minutes.value}`, () =>
    ask("chains.list", { activeMinutes: minutes.value, limit: CHAINS_MAX }),
  );
  useNews(() => true, reading.again);
  const told = reading.value?.names;
  useEffect(() => {
    if (told !== undefined) names.value = told;
  }, [told]);
  return reading;
}

export function useChain(chainId: string) {
  const reading = useReading(`chain ${chainId}`, () => ask("chains.get", { chainId }));
  const parties = reading.value?.parties ?? [];
  useNews(({ stream, data, sessionKey }) => {
    if (stream === "lifecycle") return data.chainId === chainId;
    return parties.some(({ key }) => key === sessionKey);
  }, reading.again);
  return reading;
}
