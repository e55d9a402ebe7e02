// Owns the methods about chains: the list of active ones, and one chain's steps in order. A reader who may
// see at least one session of a chain sees the chain. Sessions that the reader may not see, and their
// figures, are hidden (I9).

import { operatorKey, viewerScope } from "../../../access/access.ts";
import { createGate } from "../../../access/token.ts";
import type { CHAIN_METHODS } from "../../../contract/methods/chains.ts";
import type { ParamsOf, PayloadOf } from "../../../contract/methods.ts";
import { optional } from "../../../core/optional.ts";
import { NOT_VISIBLE } from "../../../core/rules/visibility.ts";
import type { ChainRow, ChainStep, ChainTalk } from "../../../core/shapes/chain-step.ts";
import { badCursor, fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { Redactor } from "../../../core/text/redact/redact.ts";
import { readChain } from "../../../store/queries/chains/chain-details.ts";
import {
  type ChainFacts,
  type ChainHead,
  type ChainOpening,
  type ChainPlace,
  chainsAtWork,
  factsOfChains,
  labelsOf,
  listChains,
  openingsOf,
  usageOfChains,
} from "../../../store/queries/chains/chain-lists.ts";
import { callMessagesOf } from "../../../store/queries/runs/calls.ts";
import { listSessions } from "../../../store/queries/sessions/session-lists.ts";
import { searchChains } from "../../../store/queries/transcripts/transcript-search.ts";
import type { CallContext, Methods } from "../../call.ts";
import { labelsOfRuns } from "../rights/step-labels.ts";
import { callsOf } from "./calls.ts";
import { chainRecord, type RecordDeps } from "./record.ts";
import { partiesOf, shortExcerpt, stepsOf } from "./steps.ts";

const WINDOW_MINUTES = 60;
const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 200;
/**
 * Maximum number of store pages read for one page of the answer. The answer's cursor continues after the last
 * store page that was read.
 */
const PAGES_MAX = 10;
/**
 * Maximum number of chains that are appended to the last page because they still work, although their last
 * step is older than the time window.
 */
const AT_WORK_MAX = 200;
/** Maximum number of chains whose messages match a search, and of sessions whose names do. */
const MATCHES_MAX = 1_000;
const NAMED_MAX = 50;
const SESSIONS_MAX = 24;
const TALKS_MAX = 40;
const STEPS_MAX = 5_000;
/**
 * Maximum number of transcript entries (model answers and tool results) read to list the calls of a chain.
 */
const CALLS_MAX = 10_000;
/** Maximum bytes of these transcript entries. */
const CALL_BYTES_MAX = 8 * 1024 * 1024;
/** Maximum bytes of the inputs and answers of one chain's runs. */
const BYTES_MAX = 16 * 1024 * 1024;

type Sees = (sessionKey: string) => boolean;

function decodeCursor(cursor: string | undefined): Result<ChainPlace | undefined> {
  if (cursor === undefined) return ok(undefined);
  const [, at, chainId] = /^(\d{1,15})\.(.{1,200})$/s.exec(cursor) ?? [];
  if (at !== undefined && chainId !== undefined) return ok({ lastAt: Number(at), chainId });
  return badCursor("chains.list");
}

/** Returns the pairs of sender and recipient in which the reader sees at least one of the two sessions. */
function talksOf(facts: ChainFacts, chainId: string, sees: Sees): ChainTalk[] {
  const talks = new Map<string, ChainTalk>();
  for (const link of facts.links) {
    if (link.chainId !== chainId || (!sees(link.from) && !sees(link.to))) continue;
    const from = sees(link.from) ? link.from : NOT_VISIBLE;
    // A refused spawn reaches no session, and names only the requested agent.
    const to = link.to === "" || sees(link.to) ? link.to : NOT_VISIBLE;
    const id = JSON.stringify([link.kind, from, to]);
    const known = talks.get(id);
    const [steps, open] = [(known?.steps ?? 0) + link.steps, (known?.open ?? 0) + link.open];
    talks.set(id, { kind: link.kind, from, to, steps, open });
  }
  return [...talks.values()].sort((a, b) => b.steps - a.steps).slice(0, TALKS_MAX);
}

interface Used {
  readonly tokens: number;
  readonly cost: number;
}

/** Returns the usage, by chain, of the runs that the reader sees. */
async function seenUsage(
  ctx: CallContext,
  chainIds: readonly string[],
  sees: Sees,
): Promise<Map<string, Used>> {
  const used = new Map<string, Used>();
  for (const { chainId, sessionKey, usage } of await usageOfChains(ctx.access.db, chainIds)) {
    if (!sees(sessionKey)) continue;
    const { tokens, cost } = used.get(chainId) ?? { tokens: 0, cost: 0 };
    used.set(chainId, { tokens: tokens + usage.totalTokens, cost: cost + usage.cost.total });
  }
  return used;
}

/** The caller's view of sessions, and the data that is read for its rows. */
interface ChainReader {
  readonly redactor: Redactor;
  readonly sees: Sees;
  readonly used: Used | undefined;
  readonly opening: ChainOpening | undefined;
  readonly limits: ChainRow["limits"];
}

/** Returns one chain for the reader, or undefined if the reader may see none of its sessions. */
function rowOf(head: ChainHead, facts: ChainFacts, reader: ChainReader): ChainRow | undefined {
  const { sees, used, limits, opening } = reader;
  const { chainId, rootSessionKey } = head;
  const all = facts.shares.filter((share) => share.chainId === chainId).sort((a, b) => a.firstAt - b.firstAt);
  const links = facts.links.filter((link) => link.chainId === chainId);
  const keys = new Set(
    [rootSessionKey ?? [], all.map((share) => share.sessionKey), links.map((link) => link.from)].flat(),
  );
  const seen = [...keys].filter(sees);
  if (seen.length === 0) return undefined;
  const spoken = links.filter((link) => link.kind !== "refused");
  const partial = [...keys, ...spoken.map((link) => link.to)].some((key) => !sees(key));
  const shares = all.filter((share) => sees(share.sessionKey));
  const talks = talksOf(facts, chainId, sees);
  const times = shares.map((share) => share.lastAt);
  const shown = partial ? [...seen, NOT_VISIBLE] : seen;
  const sum = (of: (share: (typeof shares)[number]) => number): number =>
    shares.reduce((total, share) => total + of(share), 0);
  const mine = links.filter((link) => sees(link.from) && (link.to === "" || sees(link.to)));
  const count = (kinds: readonly string[]): number =>
    mine.filter((link) => kinds.includes(link.kind)).reduce((total, link) => total + link.flows, 0);
  const figures = partial
    ? { runs: sum((share) => share.turns), tokens: used?.tokens ?? 0, cost: used?.cost ?? 0, partial }
    : { runs: head.runs, tokens: head.tokens, cost: head.cost };
  const lastAt = partial ? Math.max(...times, 0) : Math.max(head.lastAt, ...times);
  return {
    chainId,
    ...(rootSessionKey === undefined
      ? {}
      : { rootSessionKey: sees(rootSessionKey) ? rootSessionKey : NOT_VISIBLE }),
    ...(opening === undefined || ![opening.sessionKey, opening.from ?? opening.sessionKey].every(sees)
      ? {}
      : { opening: shortExcerpt(reader.redactor, opening.text) }),
    startedAt: Math.min(lastAt, ...shares.map((share) => share.firstAt)),
    lastAt,
    active: shares.some((share) => share.active > 0),
    ...figures,
    failed: sum((share) => share.failed),
    hopMax: Math.max(0, ...shares.map((share) => share.hopMax)),
    limits,
    sessions: shown.slice(0, SESSIONS_MAX),
    sessionCount: shown.length,
    flows: count(["send", "spawn"]),
    refused: count(["refused"]),
    talks,
  };
}

function seesOf(ctx: CallContext): Sees {
  const gate = createGate(ctx.deps.settings, ctx.caller, "read");
  // `NOT_VISIBLE` stands for every hidden session; a pattern must not match it by accident.
  return (key) => key !== NOT_VISIBLE && gate(key);
}

async function rowsOf(ctx: CallContext, heads: readonly ChainHead[], sees: Sees): Promise<ChainRow[]> {
  const chainIds = heads.map((head) => head.chainId);
  const { db } = ctx.access;
  const [facts, openings] = await Promise.all([factsOfChains(db, chainIds), openingsOf(db, chainIds)]);
  const isScoped = ctx.caller.patterns !== undefined;
  const used = isScoped ? await seenUsage(ctx, chainIds, sees) : new Map<string, Used>();
  const { maxChainRuns, maxHops, maxChainTokens, maxChainCost } = ctx.deps.settings.session.agentToAgent;
  const limits = {
    runsMax: maxChainRuns,
    hopsMax: maxHops,
    ...optional({ tokensMax: maxChainTokens, costMax: maxChainCost }),
  };
  return heads.flatMap((head) => {
    const opening = openings.find(({ chainId }) => chainId === head.chainId);
    return (
      rowOf(head, facts, {
        redactor: ctx.deps.world.redactor,
        sees,
        limits,
        opening,
        used: used.get(head.chainId),
      }) ?? []
    );
  });
}

type Wanted = Omit<Parameters<typeof listChains>[1], "crossed" | "before" | "limit"> & {
  readonly kinds: readonly (0 | 1)[];
};

/** Returns the chains with matching messages, and the sessions with matching names, that the reader sees. */
async function matchesOf(
  ctx: CallContext,
  query: string,
  { since, until, sees }: { since: number; until: number; sees: Sees },
): Promise<NonNullable<Wanted["among"]>> {
  const { db } = ctx.access;
  const scope = viewerScope(ctx.access, ctx.viewer);
  const worker = ctx.deps.engine.store.readWorker ?? db;
  const [found, named] = await Promise.all([
    searchChains(worker, { query, scope, since, until, limit: MATCHES_MAX }, ctx.signal),
    listSessions(db, { scope, search: query, includeArchived: true, limit: NAMED_MAX }),
  ]);
  const low = query.toLowerCase();
  // The index of names also contains the first words of a session, which belong to one chain only.
  return {
    chainIds: [...new Set(found.flatMap(({ chainId, sessionKey }) => (sees(sessionKey) ? chainId : [])))],
    sessionKeys: named.rows.flatMap(({ key, label, displayName }) =>
      sees(key) && [key, label, displayName].some((name) => name?.toLowerCase().includes(low)) ? key : [],
    ),
  };
}

async function pageOf(
  ctx: CallContext,
  { kinds, ...wanted }: Wanted,
  limit: number,
  before: ChainPlace | undefined,
): Promise<ChainHead[]> {
  const place = optional({ before });
  const found = await Promise.all(
    kinds.map((crossed) => listChains(ctx.access.db, { ...wanted, ...place, crossed, limit })),
  );
  const inOrder = found.flat().sort((a, b) => b.lastAt - a.lastAt || (a.chainId < b.chainId ? 1 : -1));
  return inOrder.slice(0, limit);
}

async function list(
  ctx: CallContext,
  params: ParamsOf<"chains.list">,
): Promise<Result<PayloadOf<"chains.list">>> {
  const place = decodeCursor(params.cursor);
  if (!place.ok) return place;
  const { sessionKey } = params;
  const key = sessionKey === undefined ? undefined : operatorKey(ctx.deps.settings, sessionKey);
  if (key?.ok === false) return key;
  const sees = seesOf(ctx);
  const ts = ctx.deps.world.clock.now();
  if (key !== undefined && !sees(key.value)) return ok({ ts, count: 0, chains: [], names: {} });
  const limit = Math.min(params.limit ?? LIMIT_DEFAULT, LIMIT_MAX);
  const { from, to, state } = params;
  const agentId = params.agentId?.trim().toLowerCase();
  const since = from ?? Math.max(0, ts - (params.activeMinutes ?? WINDOW_MINUTES) * 60_000);
  const kinds = params.includeSingle === true ? ([0, 1] as const) : ([1] as const);
  const { patterns } = ctx.caller;
  const words = params.search?.trim() ?? "";
  const among = words === "" ? undefined : await matchesOf(ctx, words, { since, until: to ?? ts, sees });
  // Filter in the query, so that a cursor never points to a chain that the caller does not see.
  const wanted: Wanted = {
    ...{ since, kinds },
    ...optional({ until: to, among, agentId, state, patterns, sessionKey: key?.value }),
  };
  const chains: ChainRow[] = [];
  let before = place.value;
  let more = true;
  for (let page = 0; page < PAGES_MAX && more && chains.length < limit; page += 1) {
    const size = limit - chains.length;
    const heads = await pageOf(ctx, wanted, size, before);
    chains.push(...(await rowsOf(ctx, heads, sees)));
    before = heads.at(-1) ?? before;
    more = heads.length === size;
  }
  if (!more && state !== "failed" && [to, among, agentId].every((one) => one === undefined)) {
    const quiet = await chainsAtWork(ctx.access.db, { until: since, kinds, limit: AT_WORK_MAX });
    const rows = await rowsOf(ctx, quiet, sees);
    chains.push(...rows.filter(({ sessions }) => key === undefined || sessions.includes(key.value)));
  }
  const nextCursor = more && before !== undefined ? { nextCursor: `${before.lastAt}.${before.chainId}` } : {};
  // The rows name only sessions that the reader may see.
  const keys = new Set(chains.flatMap(({ sessions, talks }) => [sessions, talks.map(({ to }) => to)].flat()));
  const labels = await labelsOf(ctx.access.db, [...keys]);
  const names = Object.fromEntries(
    [...labels].map(([key, name]) => [key, shortExcerpt(ctx.deps.world.redactor, name)]),
  );
  return ok({ ts, count: chains.length, chains, names, ...nextCursor });
}

async function get(
  ctx: CallContext,
  { chainId, includeCalls }: ParamsOf<"chains.get">,
): Promise<Result<PayloadOf<"chains.get">>> {
  const sees = seesOf(ctx);
  const ts = ctx.deps.world.clock.now();
  const none = fail("chain_not_found", `there is no chain ${JSON.stringify(chainId)}`, {
    hint: "chains.list shows the ids.",
  });
  const whole = await readChain(ctx.access.db, chainId, { stepsMax: STEPS_MAX, bytesMax: BYTES_MAX });
  if (whole.runs.length === 0 && whole.refusals.length === 0) return none;
  const head = whole.head ?? { chainId, lastAt: 0, runs: 0, tokens: 0, cost: 0 };
  const [chain] = await rowsOf(ctx, [head], sees);
  if (chain === undefined) return none;
  const { redactor } = ctx.deps.world;
  const seesAll = ctx.caller.patterns === undefined;
  const all: ChainStep[] = stepsOf(whole, { redactor, sees, seesAll }, ts);
  const labels = await labelsOfRuns(ctx, whole.runs, [...whole.sessions.keys()]);
  const steps = all.slice(-STEPS_MAX).map((step) => {
    const own = step.id === `run:${step.runId}` ? labels.get(step.runId ?? "") : undefined;
    return own === undefined ? step : { ...step, labels: own };
  });
  const cut = whole.truncated || all.length > steps.length;
  const answer = { ts, chain, parties: partiesOf(whole, steps, redactor), steps };
  if (includeCalls !== true) return ok({ ...answer, truncated: cut });
  const most = { rowsMax: CALLS_MAX, bytesMax: CALL_BYTES_MAX };
  const shown = new Set(steps.map(({ id }) => id));
  const runs = whole.runs.filter(({ runId }) => shown.has(`run:${runId}`));
  const runIds = runs.map(({ runId }) => runId);
  const { messages, truncated } = await callMessagesOf(ctx.access.db, runIds, most);
  const calls = callsOf(runs, messages).map((call) => ({
    ...call,
    // Redact and shorten the name, because a model may ask for a tool that does not exist, with any name.
    name: shortExcerpt(redactor, call.name),
  }));
  return ok({ ...answer, calls, truncated: cut || truncated });
}

export const chainMethods: Methods<keyof typeof CHAIN_METHODS, RecordDeps> = {
  "chains.list": { handle: list },
  "chains.get": { handle: get },
  "chains.record": { handle: chainRecord },
};
