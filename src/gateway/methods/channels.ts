// Owns the method that tells how every way out of the gateway stands: channels, web hooks, outside programs.
// CS1: figures and errors of the outbox are told only to callers whose token covers every session (I9).

import type { Standing } from "../../channels/accounts.ts";
import { accountName } from "../../channels/registry.ts";
import type { ChannelAccount } from "../../core/channel-settings.ts";
import { ok } from "../../core/errors.ts";
import { redactSecrets } from "../../core/redact.ts";
import { WEBCHAT } from "../../core/route.ts";
import { agentIdInKey } from "../../core/session-key.ts";
import { hookRoute } from "../../flows/outgoing-hooks.ts";
import { channelPrefix, routeKeyOf } from "../../store/deliveries.ts";
import { type DeliveryFigures, deliveryFigures } from "../../store/delivery-figures.ts";
import type { OutsideStanding } from "../../tools/tool.ts";
import type { CallContext, GatewayDeps, Methods } from "../call.ts";
import type { ChannelRow } from "../payloads.ts";
import { seesEverything } from "./system.ts";

/** What of the outbox is told of a way out. */
function figuresOf(figures: DeliveryFigures | undefined): Partial<ChannelRow> {
  if (figures === undefined) return {};
  const { retrying: _, nextAttemptAt, lastError, ...rest } = figures;
  return {
    ...rest,
    ...(nextAttemptAt === undefined ? {} : { backoffUntil: nextAttemptAt }),
    ...(lastError === undefined ? {} : { lastError: redactSecrets(lastError) }),
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

/** An account at a channel: as it stands in this process, with what the outbox says of its channel. */
function accountRow(
  account: ChannelAccount,
  standings: readonly Standing[],
  figures: DeliveryFigures | undefined,
): ChannelRow {
  const id = accountName(account.channel, account.accountId);
  const standing = standings.find((one) => one.account === id);
  const base = { id, kind: "channel", configured: true, ...figuresOf(figures) } as const;
  if (standing === undefined) return { ...base, ok: true, state: "configured" };
  const { state, since, error, retryAt } = standing;
  return {
    ...base,
    ok: state !== "retrying",
    state: STATES[state],
    ...(state === "ready" ? { connectedSince: since } : {}),
    ...(error === undefined ? {} : { lastError: redactSecrets(error), lastErrorAt: since }),
    ...(retryAt === undefined ? {} : { backoffUntil: retryAt }),
  };
}

/** The ways of the outbox: webchat, each account, each hook, and whatever was configured once. */
async function outboxRows(deps: GatewayDeps, all: boolean): Promise<ChannelRow[]> {
  const { settings, engine } = deps;
  const hooks = settings.outgoingHooks;
  const ids = [...new Set(settings.channels.map(({ channel }) => channel))];
  const prefixes = [
    channelPrefix(WEBCHAT),
    ...hooks.map((hook) => routeKeyOf(hookRoute(hook))),
    ...ids.map(channelPrefix),
  ];
  const figures = all ? await deliveryFigures(engine.store.db, prefixes) : [];
  const [webchat] = figures;
  const rest = all ? figures.at(-1) : undefined;
  const standings = all ? (deps.standings?.() ?? []) : [];
  const rows: ChannelRow[] = [
    { id: WEBCHAT, kind: "webchat", configured: true, ok: true, state: "ready", ...figuresOf(webchat) },
    ...settings.channels.map((account, at) => {
      // Text of one channel's accounts is counted together: at the first of them.
      const isFirst = settings.channels.findIndex(({ channel }) => channel === account.channel) === at;
      const own = figures[1 + hooks.length + ids.indexOf(account.channel)];
      return accountRow(account, standings, isFirst ? own : undefined);
    }),
    ...hooks.map(({ name }, at): ChannelRow => {
      const own = figures[at + 1];
      const base = { id: `webhook:${name}`, kind: "webhook", configured: true } as const;
      return { ...base, ...stateOf(own), ...figuresOf(own) };
    }),
  ];
  if (rest === undefined || rest.pending + rest.failed === 0) return rows;
  const gone = { id: "other", kind: "other", configured: false, ok: false, state: "failing" } as const;
  return [...rows, { ...gone, ...figuresOf(rest) }];
}

function serverRow({ server, state, lastError, ...more }: OutsideStanding): ChannelRow {
  const base = { id: `mcp:${server}`, kind: "mcp", configured: true, ok: state !== "down", state } as const;
  return { ...base, ...more, ...(lastError === undefined ? {} : { lastError: redactSecrets(lastError) }) };
}

function programRows({ settings, programs }: GatewayDeps, all: boolean): ChannelRow[] {
  const running = (programs?.() ?? []).map(agentIdInKey);
  return settings.agents
    .filter(({ runtime }) => runtime !== undefined)
    .map(({ id }): ChannelRow => {
      const count = running.filter((agentId) => agentId === id).length;
      const base = { id: `acp:${id}`, kind: "acp", configured: true, ok: true } as const;
      if (!all) return { ...base, state: "configured" };
      return { ...base, state: count > 0 ? "ready" : "idle", programs: count };
    });
}

export const channelMethods: Methods<"channels.status"> = {
  "channels.status": {
    async handle({ deps, caller }: CallContext) {
      const all = seesEverything(caller);
      const servers = (deps.outside?.standings() ?? []).map(serverRow);
      return ok({ channels: [...(await outboxRows(deps, all)), ...servers, ...programRows(deps, all)] });
    },
  },
};
