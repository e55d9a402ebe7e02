// Owns the method that tells how every way out of the gateway stands: channels, web hooks, outside programs.
// CS1: figures and errors of the outbox are told only to callers whose token covers every session (I9).

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

/** The ways of the outbox: webchat, each hook, and whatever was configured once. */
async function outboxRows({ settings, engine }: GatewayDeps, all: boolean): Promise<ChannelRow[]> {
  const hooks = settings.outgoingHooks;
  const prefixes = [channelPrefix(WEBCHAT), ...hooks.map((hook) => routeKeyOf(hookRoute(hook)))];
  const figures = all ? await deliveryFigures(engine.store.db, prefixes) : [];
  const [webchat] = figures;
  const rest = figures.at(-1);
  const rows: ChannelRow[] = [
    { id: WEBCHAT, kind: "webchat", configured: true, ok: true, state: "ready", ...figuresOf(webchat) },
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
