// Owns the state of the flow view: time window, filter and loaded chains. An event reloads only the data that
// it affects.

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { AgentEvent } from "../../../src/contract/events.ts";
import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { ask } from "../gateway.ts";
import { nameOf as sessionNameOf } from "../parts/names.ts";
import { useNews, useReading } from "../parts/reading.ts";

const CHAINS_MAX = 100;

export const WINDOWS = [
  { minutes: 15, name: "15 min" },
  { minutes: 60, name: "1 hour" },
  { minutes: 1_440, name: "24 hours" },
] as const;

export interface Filter {
  readonly from: string;
  /** Absent if the filter selects every chain in which `from` takes part. */
  readonly to?: string;
}

export const minutes = signal<number>(60);
/** Name of the time window in which there was no chain, so that the page looked further back by itself. */
export const emptyWindow = signal<string | undefined>(undefined);
export const filter = signal<Filter | undefined>(undefined);
/** The agent that takes part in the shown chains. Empty: any agent. */
export const agent = signal("");
/** The state of the shown chains. Empty: any state. */
export const chainState = signal<"" | "running" | "failed">("");

/** Shows all chains of the time window. */
export function clearFilters(): void {
  filter.value = undefined;
  agent.value = "";
  chainState.value = "";
}

/** Returns the agent of a session. Undefined for sessions that no agent owns. */
function agentOf(sessionKey: string): string | undefined {
  return /^agent:([^:]+):/.exec(sessionKey)?.[1];
}

/** Returns the agents that take part in these chains, sorted. */
export function agentsIn(chains: readonly ChainRow[]): string[] {
  return [...new Set(chains.flatMap(({ sessions }) => sessions.flatMap((key) => agentOf(key) ?? [])))].sort();
}

/** Returns true if a chain matches all filters. */
export function isShown(chain: ChainRow): boolean {
  if (agent.value !== "" && !agentsIn([chain]).includes(agent.value)) return false;
  if (chainState.value === "running" && !chain.active) return false;
  if (chainState.value === "failed" && chain.failed === 0) return false;
  return fits(chain, filter.value);
}

/** The ways to show a chain. */
export const MODES = [
  { mode: "sequence", name: "Sequence" },
  { mode: "waterfall", name: "Waterfall" },
  { mode: "list", name: "Steps" },
] as const;
export type Mode = (typeof MODES)[number]["mode"];

/** The view that the reader chose. Undefined: a list on a narrow screen, otherwise the sequence. */
export const chosenMode = signal<Mode | undefined>(undefined);
export const showsOverview = signal(true);

/** Names of sessions, as received with the list of chains. */
const names = signal<Readonly<Record<string, string>>>({});

/** Returns the name of a session for the list and the overview. */
export function nameOf(sessionKey: string): string {
  return names.value[sessionKey] ?? sessionNameOf(sessionKey);
}

/** Returns true if a chain matches the choice of sessions in the overview. */
function fits(chain: ChainRow, wanted: Filter | undefined): boolean {
  if (wanted === undefined) return true;
  if (wanted.to === undefined)
    return (
      chain.sessions.includes(wanted.from) ||
      chain.talks.some(({ from, to }) => from === wanted.from || to === wanted.from)
    );
  return chain.talks.some(({ from, to }) => from === wanted.from && to === wanted.to);
}

/** Returns whether an event may change a chain. */
function moves({ stream }: AgentEvent): boolean {
  return stream === "lifecycle" || stream === "flow";
}

export function useChains() {
  const reading = useReading(`chains ${minutes.value}`, () =>
    ask("chains.list", { activeMinutes: minutes.value, limit: CHAINS_MAX }),
  );
  useNews("agent", reading.again, moves);
  const at = WINDOWS.findIndex((one) => one.minutes === minutes.value);
  const [window, wider] = WINDOWS.slice(at);
  useEffect(() => {
    if (reading.value?.chains.length !== 0 || wider === undefined) return;
    emptyWindow.value ??= window?.name;
    minutes.value = wider.minutes;
  }, [reading.value]);
  const told = reading.value?.names;
  useEffect(() => {
    if (told !== undefined) names.value = told;
  }, [told]);
  return reading;
}

/**
 * Reads a chain, and reads it again after events that may change it. Events during a read cause only one more
 * read.
 */
export function useChain(chainId: string, includeCalls: boolean) {
  const reading = useReading(`chain ${chainId}`, () => ask("chains.get", { chainId, includeCalls }));
  const { busy, again } = reading;
  const late = useRef(false);
  const parties = useMemo(() => new Set(reading.value?.parties.map(({ key }) => key)), [reading.value]);
  const soon = (): void => {
    if (busy) late.current = true;
    else void again();
  };
  useEffect(() => {
    if (busy || !late.current) return;
    late.current = false;
    void again();
  }, [busy]);
  useEffect(() => {
    if (includeCalls) void again();
  }, [includeCalls]);
  useNews("agent", soon, (event) => {
    const { stream, data, sessionKey } = event;
    if (stream === "lifecycle") return data.chainId === chainId;
    // Events of tools matter only for the waterfall, which shows tool calls.
    return (moves(event) || (includeCalls && stream === "tool")) && parties.has(sessionKey);
  });
  return reading;
}
