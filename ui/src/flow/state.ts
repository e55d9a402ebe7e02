// Owns the state of the flow view: the loaded chains and the choices that the address does not contain. An
// event reloads only the data that it affects.

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { AgentEvent } from "../../../src/contract/events.ts";
import type { ParamsOf } from "../../../src/contract/methods.ts";
import { optional } from "../../../src/core/optional.ts";
import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { agentIn } from "../agents/face.ts";
import { ask } from "../gateway.ts";
import { nameOf as sessionNameOf } from "../parts/names.ts";
import { useNews, usePages, useReading } from "../parts/reading.ts";
import { queries } from "../route.ts";
import type { Pair } from "./pairs.ts";
import { daysOf, PERIODS, TRIED, wish } from "./wish.ts";

const PAGE_CHAINS = 50;

/** The row that the reader chose in the overview. */
export const chosenPair = signal<Pair | undefined>(undefined);

export function agentsIn(chains: readonly ChainRow[]): string[] {
  const ids = chains.flatMap(({ sessions }) => sessions.map(agentIn)).filter((id) => id !== "");
  return [...new Set(ids)].sort();
}

/** Whether the overview is shown when no chain is chosen. */
export const showsOverview = signal(false);

/** Names of sessions, as received with the list of chains. */
const names = signal<Readonly<Record<string, string>>>({});

/** Returns the name of a session for the list and the overview. */
export function nameOf(sessionKey: string): string {
  return names.value[sessionKey] ?? sessionNameOf(sessionKey);
}

const moves = ({ stream }: AgentEvent): boolean => stream === "lifecycle" || stream === "flow";

type ListParams = ParamsOf<"chains.list">;

/** Reads one period after the other until a chain can be offered. `note` says how far back that was. */
export async function readBack(
  periods: readonly (typeof PERIODS)[number][],
  filters: ListParams,
  canOffer: (chain: ChainRow) => boolean = () => true,
) {
  const [first] = periods;
  for (const period of periods) {
    const { minutes, name } = period;
    const params: ListParams = { ...filters, activeMinutes: minutes };
    const answer = await ask("chains.list", params);
    const note = period === first ? "" : `None within ${first?.name}. Last ${name}:`;
    if (answer.chains.some(canOffer) || period === periods.at(-1)) return { ...answer, params, note };
  }
  return undefined;
}

/** Reads the newest chains. If the reader has chosen no period, looks further back until there is a chain. */
async function readChains() {
  const { period, search, agent, state } = wish.value;
  const named = { search: search || undefined, agentId: agent || undefined, state: state || undefined };
  const filters = { limit: PAGE_CHAINS, ...optional(named) };
  if (period !== "dates")
    return readBack(period === "" ? TRIED : PERIODS.filter(({ id }) => id === period), filters);
  const params = { ...filters, ...daysOf(wish.value) };
  return { ...(await ask("chains.list", params)), params, note: "" };
}

type Page = Awaited<ReturnType<typeof readChains>>;

async function readPage(before: Page): Promise<Page> {
  if (before?.nextCursor === undefined) return readChains();
  const { params, note, nextCursor: cursor } = before;
  return { ...(await ask("chains.list", { ...params, cursor })), params, note };
}

/** Reads the newest chains that fit, and older ones on demand. */
export function useChains() {
  const reading = usePages<Page>(`chains ${queries.flow.value}`, readPage);
  const { value: pages, again } = reading;
  useNews("agent", again, moves);
  useEffect(() => {
    if (pages !== undefined)
      names.value = Object.assign({}, names.value, ...pages.map((page) => page?.names));
  }, [pages]);
  const chains = useMemo(() => (pages ?? []).flatMap((page) => page?.chains ?? []), [pages]);
  return { ...reading, chains, note: pages?.[0]?.note };
}

/** Reads a chain, also after events that may change it. */
export function useChain(chainId: string, includeCalls: boolean) {
  const reading = useReading(`chain ${chainId}`, () => ask("chains.get", { chainId, includeCalls }));
  const { again } = reading;
  const parties = useMemo(() => new Set(reading.value?.parties.map(({ key }) => key)), [reading.value]);
  useEffect(() => {
    if (includeCalls) void again();
  }, [includeCalls]);
  useNews("agent", again, (event) => {
    const { stream, data, sessionKey } = event;
    if (stream === "lifecycle") return data.chainId === chainId;
    // Events of tools matter only for the waterfall, which shows tool calls.
    return (moves(event) || (includeCalls && stream === "tool")) && parties.has(sessionKey);
  });
  return reading;
}
