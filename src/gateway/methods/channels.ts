// Implements the methods about channels: the status of every outgoing path, the people who may write to
// agents, and the chats that are bound to a session.
// Figures and errors of the outbox, the state of servers and programs, and the list of people need a token
// that covers every session. A binding is returned only to callers that may see its session (I9).

import { resolveSession } from "../../access/resolve.ts";
import { createGate, seesEverything } from "../../access/token.ts";
import { type AccountStatus, accountName } from "../../channels/accounts.ts";
import type { Channel } from "../../channels/channel.ts";
import type { CHANNEL_METHODS, ChannelRow, PeerRow } from "../../contract/methods/channels.ts";
import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { checkAccountValue } from "../../core/account-answer.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { WEBCHAT } from "../../core/shapes/route.ts";
import { agentIdInKey } from "../../core/shapes/session-key.ts";
import type { ChannelAccount } from "../../core/shapes/settings/channels.ts";
import { programOf } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import type { Unit } from "../../engine/unit.ts";
import { loadOutboxes, PLATFORMS } from "../../features.ts";
import { unbind } from "../../flows/delivery/bindings.ts";
import {
  agentOfPeer,
  approvePairing,
  listPairings,
  rejectPairing,
  removePeer,
} from "../../flows/delivery/pairing.ts";
import type { ChannelPeer } from "../../store/queries/channels/channel-peers.ts";
import { channelPrefix, routeKeyOf } from "../../store/queries/channels/deliveries.ts";
import { type DeliveryFigures, deliveryFigures } from "../../store/queries/channels/delivery-figures.ts";
import { listBindings } from "../../store/queries/channels/thread-bindings.ts";
import type { OutsideTools } from "../../tools/tool.ts";
import { type BasicDeps, type CallContext, commitAnswer, type Methods } from "../call.ts";
import { type ConfigDeps, settingsAfter } from "./configuration.ts";
import { needEverySession } from "./operations.ts";

export interface ChannelDeps extends ConfigDeps {
  /** Channels by id. */
  readonly channels: ReadonlyMap<string, Channel>;
  /** Returns the status of the channel accounts in this process. Absent if there are none. */
  channelStatuses?(): readonly AccountStatus[];
  /** MCP servers. Absent if none is configured. */
  readonly outside?: Pick<OutsideTools, "statuses"> | undefined;
  /**
   * Returns the sessions for which a program of an ACP agent is running. Absent if there are no ACP agents.
   */
  programs?(): readonly string[];
}

/** The account whose values are directly below the channel. */
const DEFAULT_ACCOUNT = "default";
/** Maximum number of bindings in one answer. */
const BINDINGS_MAX = 1_000;

/** Returns the outbox's figures for one delivery path. */
function figuresOf(figures: DeliveryFigures | undefined, redactor: Redactor): Partial<ChannelRow> {
  if (figures === undefined) return {};
  const { retrying: _, nextAttemptAt, lastError, ...rest } = figures;
  return {
    ...rest,
    ...optional({ backoffUntil: nextAttemptAt }),
    ...(lastError === undefined ? {} : { lastError: redactor.mask(lastError) }),
  };
}

function stateOf(figures: DeliveryFigures | undefined): Pick<ChannelRow, "ok" | "state"> {
  if (figures === undefined) return { ok: true, state: "configured" };
  const { retrying, failed, lastErrorAt = 0, lastSentAt } = figures;
  if (retrying > 0) return { ok: false, state: "retrying" };
  if (failed > 0 && lastErrorAt > (lastSentAt ?? 0)) return { ok: false, state: "failing" };
  return { ok: true, state: lastSentAt === undefined ? "idle" : "ready" };
}

const STATES = { ready: "ready", connecting: "starting", retrying: "retrying", standby: "standby" } as const;

/** Returns an account of a channel: its status in this process, and the outbox figures of the channel. */
function accountRow(
  account: ChannelAccount,
  statuses: readonly AccountStatus[],
  { figures, redactor }: { figures: DeliveryFigures | undefined; redactor: Redactor },
): ChannelRow {
  const id = accountName(account.channel, account.accountId);
  const status = statuses.find((one) => one.account === id);
  const base = { id, kind: "channel", configured: true, ...figuresOf(figures, redactor) } as const;
  if (status === undefined) return { ...base, ok: true, state: "configured" };
  const { state, since, error, retryAt } = status;
  return {
    ...base,
    ok: state !== "retrying",
    state: STATES[state],
    ...(state === "ready" ? { connectedSince: since } : {}),
    ...(error === undefined ? {} : { lastError: redactor.mask(error), lastErrorAt: since }),
    ...optional({ backoffUntil: retryAt }),
  };
}

/**
 * Returns the paths of the outbox: webchat, each account, each program, and those that are no longer
 * configured.
 */
async function outboxRows(deps: ChannelDeps, all: boolean): Promise<ChannelRow[]> {
  const { settings, engine } = deps;
  const { redactor } = deps.world;
  const programs = (await loadOutboxes()).flatMap(({ routes }) => routes?.(settings) ?? []);
  const ids = [...new Set(settings.channels.map(({ channel }) => channel))];
  const prefixes = [channelPrefix(WEBCHAT), ...programs.map(routeKeyOf), ...ids.map(channelPrefix)];
  const figures = all ? await deliveryFigures(engine.store.db, prefixes) : [];
  const [webchat] = figures;
  const rest = all ? figures.at(-1) : undefined;
  const statuses = all ? (deps.channelStatuses?.() ?? []) : [];
  const rows: ChannelRow[] = [
    {
      id: WEBCHAT,
      kind: "webchat",
      configured: true,
      ok: true,
      state: "ready",
      ...figuresOf(webchat, redactor),
    },
    ...settings.channels.map((account, at) => {
      // The outbox counts texts per channel, so its figures are shown at the channel's first account.
      const isFirst = settings.channels.findIndex(({ channel }) => channel === account.channel) === at;
      const own = figures[1 + programs.length + ids.indexOf(account.channel)];
      return accountRow(account, statuses, { figures: isFirst ? own : undefined, redactor });
    }),
    ...programs.map(({ channel, to }, at): ChannelRow => {
      const own = figures[at + 1];
      const base = { id: `${channel}:${to}`, kind: "webhook", configured: true } as const;
      return { ...base, ...stateOf(own), ...figuresOf(own, redactor) };
    }),
  ];
  if (rest === undefined || rest.pending + rest.failed === 0) return rows;
  const gone = { id: "other", kind: "other", configured: false, ok: false, state: "failing" } as const;
  return [...rows, { ...gone, ...figuresOf(rest, redactor) }];
}

function programRows({ settings, programs }: ChannelDeps, all: boolean): ChannelRow[] {
  const running = (programs?.() ?? []).map(agentIdInKey);
  return settings.agents
    .filter((agent) => programOf(agent) !== undefined)
    .map(({ id }): ChannelRow => {
      const count = running.filter((agentId) => agentId === id).length;
      const base = { id: `acp:${id}`, kind: "acp", configured: true, ok: true } as const;
      if (!all) return { ...base, state: "configured" };
      return { ...base, state: count > 0 ? "ready" : "idle", programs: count };
    });
}

/** Tests an account with values that are not in the configuration file yet. */
async function testValues(
  ctx: CallContext<ChannelDeps>,
  id: string,
  values: Readonly<Record<string, string>>,
): Promise<Result<PayloadOf<"channels.test">>> {
  const allowed = needEverySession(ctx.caller, "a test of other values");
  if (!allowed.ok) return allowed;
  const questions = PLATFORMS[id]?.guide.questions;
  if (questions === undefined) return fail("channel_unknown", `there is no channel ${quoted(id, 80)}`);
  for (const [key, value] of Object.entries(values)) {
    const question = Object.hasOwn(questions, key) ? questions[key] : undefined;
    const wrong =
      question === undefined
        ? `values may have ${Object.keys(questions).join(", ")}, not ${quoted(key, 80)}`
        : checkAccountValue(question.form, value);
    if (wrong !== undefined) return fail("invalid_argument", wrong);
  }
  const changes = Object.entries(values).map(([key, value]) => ({ path: `channels.${id}.${key}`, value }));
  const settings = await settingsAfter(ctx, changes);
  if (!settings.ok) return settings;
  const account = settings.value.channels.find(
    (one) => one.channel === id && one.accountId === DEFAULT_ACCOUNT,
  );
  if (account === undefined) return fail("channel_unknown", `these values make no account of ${id}`);
  const { inspectChannels } = await import("../../channels/inspect.ts");
  const [report] = await inspectChannels([account], ctx.deps.world);
  const shown = ctx.deps.world.redactor.mask(report?.text ?? "");
  if (report?.usable !== true) return fail("channel_failed", shown);
  return ok({ ok: true, account: report.account, name: shown });
}

async function test(
  ctx: CallContext<ChannelDeps>,
  { channel: id, accountId, values }: ParamsOf<"channels.test">,
): Promise<Result<PayloadOf<"channels.test">>> {
  if (values !== undefined) return testValues(ctx, id, values);
  const { deps } = ctx;
  const accounts = deps.settings.channels.filter(({ channel }) => channel === id);
  const account = accounts.find((one) => accountId === undefined || one.accountId === accountId);
  if (account === undefined) {
    const there = deps.settings.channels.map((one) => accountName(one.channel, one.accountId)).join(", ");
    const shown = quoted(accountName(id, accountId ?? "…"), 80);
    return fail("channel_unknown", `there is no account ${shown}; configured: ${there || "none"}`);
  }
  const name = accountName(account.channel, account.accountId);
  const found = await deps.channels.get(id)?.test?.(account.accountId);
  if (found === undefined)
    return fail("channel_failed", `${name} can't be tested`, {
      hint: "Look at its status: npx parley-gateway channels.",
    });
  if (found.ok) return ok({ ok: true, account: name, name: deps.world.redactor.mask(found.value) });
  return fail("channel_failed", found.error);
}

function peerRow({ settings, world }: BasicDeps, { toldAt: _, route: __, ...peer }: ChannelPeer): PeerRow {
  const name = peer.name === undefined ? undefined : world.redactor.mask(peer.name);
  return { ...peer, ...optional({ name }), agentId: agentOfPeer(settings, peer) };
}

/** Stores a decision on a person. */
async function decide(
  ctx: CallContext,
  work: (unit: Unit) => Promise<Result<ChannelPeer>>,
): Promise<Result<{ ok: true; peer: PeerRow }>> {
  return commitAnswer(ctx, async (unit): Promise<Result<{ ok: true; peer: PeerRow }>> => {
    const done = await work(unit);
    return done.ok ? ok({ ok: true, peer: peerRow(ctx.deps, done.value) }) : done;
  });
}

async function unbindSession(
  ctx: CallContext<ChannelDeps>,
  { sessionKey }: ParamsOf<"bindings.unbind">,
): Promise<Result<PayloadOf<"bindings.unbind">>> {
  const found = await resolveSession(ctx.access, ctx.viewer, "send", { sessionKey });
  if (!found.ok) return found;
  const { key } = found.value;
  return commitAnswer(ctx, async (unit): Promise<Result<PayloadOf<"bindings.unbind">>> => {
    const asked = { what: { sessionKey: key }, why: "asked", tell: true } as const;
    const ended = await unbind(ctx.deps, unit, asked);
    return ok({ ok: true, sessionKey: key, ended: ended.length });
  });
}

export const channelMethods: Methods<keyof typeof CHANNEL_METHODS, ChannelDeps> = {
  "channels.status": {
    async handle({ deps, caller }) {
      const all = seesEverything(caller);
      const servers = (deps.outside?.statuses() ?? []).map(
        ({ server, state, lastError, ...more }): ChannelRow => {
          const base = { id: `mcp:${server}`, kind: "mcp", configured: true } as const;
          if (!all) return { ...base, ok: true, state: "configured" };
          const error = lastError === undefined ? {} : { lastError: deps.world.redactor.mask(lastError) };
          return { ...base, ok: state !== "down", state, ...more, ...error };
        },
      );
      return ok({ channels: [...(await outboxRows(deps, all)), ...servers, ...programRows(deps, all)] });
    },
  },
  "channels.test": { handle: test },
  "channels.pair.list": {
    async handle(ctx) {
      const peers = await listPairings(ctx.access.db, ctx.deps.engine.now());
      return ok({ peers: peers.map((peer) => peerRow(ctx.deps, peer)) });
    },
  },
  "channels.pair.approve": {
    handle: (ctx, { code }) => decide(ctx, (unit) => approvePairing(ctx.deps, code, unit)),
  },
  "channels.pair.reject": {
    handle: (ctx, { code }) => decide(ctx, (unit) => rejectPairing(ctx.deps, code, unit)),
  },
  "channels.pair.remove": {
    handle: (ctx, { channel, peerId, accountId = "default" }) =>
      decide(ctx, (unit) => removePeer(unit, { channel, accountId, peerId })),
  },
  "bindings.list": {
    async handle(ctx) {
      const sees = createGate(ctx.deps.settings, ctx.caller, "list");
      const { patterns } = ctx.caller;
      const bindings = await listBindings(ctx.access.db, { limit: BINDINGS_MAX, patterns });
      return ok({ bindings: bindings.filter(({ sessionKey }) => sees(sessionKey)) });
    },
  },
  "bindings.unbind": { handle: unbindSession },
};
