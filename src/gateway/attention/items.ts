// Converts store rows to items of the attention list. An item has one redacted line and the actions that the
// caller may take.

import { createGate, seesEverything } from "../../access/token.ts";
import type { AttentionItem } from "../../contract/methods/attention.ts";
import { optional } from "../../core/optional.ts";
import { firstLine, questionOf, type TurnPlace } from "../../core/rules/attention/groups.ts";
import { hasScope, mayAnswerPermissions } from "../../core/rules/scopes.ts";
import { isSilent } from "../../core/rules/turn-rules.ts";
import { visibleOutcome } from "../../core/shapes/chain-step.ts";
import { asAnswerable, describeAction } from "../../core/shapes/permission.ts";
import { plainLine } from "../../core/text/plain-line.ts";
import { FEATURES } from "../../features.ts";
import { agentOfPeer, listPairings } from "../../flows/delivery/pairing.ts";
import type { Delivery } from "../../store/queries/channels/deliveries.ts";
import { openPermissions } from "../../store/queries/permissions.ts";
import type { ActiveTurn, EndedTurn, TurnTexts } from "../../store/queries/runs/attention.ts";
import type { CallContext } from "../call.ts";
import { type PermissionDeps, waitingChanges } from "../methods/rights/permissions.ts";
import { storeTrouble } from "../methods/system.ts";

const AWAITED_MAX = 5;
/** The longest summary in the list, in characters. */
export const LINE_MAX_CHARS = 200;

type Action = AttentionItem["actions"][number];

/** The rights of the caller, by session. */
export interface Covers {
  readonly list: (sessionKey: string) => boolean;
  readonly send: (sessionKey: string) => boolean;
  readonly deliveries: (sessionKey: string) => boolean;
  /** The token has operator.admin. */
  readonly isAdmin: boolean;
  /** The token covers every session. */
  readonly everything: boolean;
}

export function coversOf({ deps, caller }: CallContext): Covers {
  const gate = (access: "list" | "send" | "deliveries") => createGate(deps.settings, caller, access);
  return {
    list: gate("list"),
    send: gate("send"),
    deliveries: gate("deliveries"),
    isAdmin: hasScope(caller.scopes, "operator.admin"),
    everything: seesEverything(caller),
  };
}

/** Returns a text as one redacted line. */
export function line(ctx: CallContext, text: string): string {
  return ctx.deps.world.redactor.line(text, LINE_MAX_CHARS);
}

/** Returns Markdown as one line. Redacts it first, because a secret may contain marks. */
function plain(ctx: CallContext, text: string, lineOf = plainLine): string {
  return line(ctx, lineOf(ctx.deps.world.redactor.mask(text)));
}

/** Returns the requests of agents for permission, oldest first. */
export async function permissionItems(ctx: CallContext, covers: Covers): Promise<AttentionItem[]> {
  const open = await openPermissions(ctx.access.db, ctx.deps.engine.now());
  const shown = open.filter(({ sessionKey }) => covers.list(sessionKey));
  const isWhole = mayAnswerPermissions(ctx.caller);
  return shown.map((one) => {
    const question = asAnswerable(one, ctx.caller.patterns === undefined);
    const { id, sessionKey, agentId, title, kind, scopes, askedAt, expiresAt, labels } = question;
    // A form is answered in the details.
    const approve = scopes.length === 0 ? "answer" : "approve";
    return {
      id: `permission:${id}`,
      kind: "permission",
      ref: id,
      since: askedAt,
      // People answer from the list, so they see the whole action.
      summary: isWhole ? describeAction(question) : line(ctx, describeAction(question)),
      actions: covers.isAdmin && covers.send(sessionKey) ? [approve, "deny"] : [],
      sessionKey,
      agentId,
      expiresAt,
      title: line(ctx, kind ?? title),
      ...optional({ labels: isWhole ? labels : labels && ctx.deps.world.redactor.all(labels) }),
    };
  });
}

/** Returns the problem of the store, if it has one, for callers who may see all work of the gateway. */
export async function storeItems(ctx: CallContext, covers: Covers): Promise<AttentionItem[]> {
  const trouble = covers.everything ? await storeTrouble(ctx.deps) : undefined;
  if (trouble === undefined) return [];
  const summary = line(ctx, `New messages are refused: ${trouble.reason}.`);
  const since = ctx.deps.engine.now();
  return [{ id: "store", kind: "store", ref: "store", since, summary, actions: [], title: "Store" }];
}

const CHANGE_WORDS = { new: "was created", changed: "was changed", deleted: "was deleted" } as const;

/** Returns the changed instruction files that wait for an owner, oldest first. */
export async function instructionItems(ctx: CallContext<PermissionDeps>): Promise<AttentionItem[]> {
  return (await waitingChanges(ctx)).map(({ id, path, kind, source, sessionKey, since, diff }) => ({
    id: `instructions:${path}`,
    kind: "instructions",
    ref: id,
    since,
    summary: line(ctx, `${path} ${CHANGE_WORDS[kind]} by a run with outside content (${source})`),
    actions: ["approve", "deny"],
    sessionKey,
    title: line(ctx, path),
    diff,
  }));
}

export async function pairingItems(ctx: CallContext, covers: Covers): Promise<AttentionItem[]> {
  if (!covers.isAdmin) return [];
  const { engine, settings } = ctx.deps;
  const peers = covers.everything ? await listPairings(ctx.access.db, engine.now()) : [];
  return peers.flatMap((who): AttentionItem[] => {
    const { channel, accountId, peerId, name, code, askedAt } = who;
    const agentId = agentOfPeer(settings, who);
    if (code === undefined) return [];
    return [
      {
        id: `pairing:${channel}:${accountId}:${peerId}`,
        kind: "pairing",
        ref: code,
        since: askedAt,
        summary: line(
          ctx,
          `Wants to write to the agent ${agentId} on ${channel}:${accountId} · id ${peerId}`,
        ),
        actions: ["approve", "deny"],
        title: line(ctx, name ?? peerId),
      },
    ];
  });
}

export async function featureItems(ctx: CallContext, covers: Covers): Promise<AttentionItem[]> {
  const items: AttentionItem[] = [];
  for (const { attention } of FEATURES)
    items.push(...((await (await attention?.())?.items(ctx, covers)) ?? []));
  return items;
}

export function deliveryItem(ctx: CallContext, covers: Covers, delivery: Delivery): AttentionItem {
  const { id, sessionKey, code, createdAt, settledAt = createdAt } = delivery;
  const { route, error } = visibleOutcome(delivery, covers.deliveries);
  const { channel, to } = route;
  return {
    id: `delivery:${id}`,
    kind: "delivery",
    ref: id,
    since: settledAt,
    summary: line(ctx, error ?? code ?? "It was not sent."),
    actions: ["retry", "dismiss"],
    sessionKey,
    title: line(ctx, `${channel} to ${to}`),
    ...optional({ code }),
  };
}

type PlacedTurn = EndedTurn & TurnPlace & { readonly unanswered?: string };

function endedSummary(ctx: CallContext, turn: PlacedTurn, texts: TurnTexts | undefined): string {
  const { state, error, code, kind, unanswered } = turn;
  if (kind === "unanswered") return line(ctx, `Nobody answered in time, so it was not done: ${unanswered}`);
  if (kind === "question") return plain(ctx, questionOf(texts?.replyEnd ?? turn.tail));
  if (state === "ok") {
    const reply = texts?.reply ?? "";
    return isSilent(reply) ? "No reply." : plain(ctx, reply, firstLine);
  }
  if (state === "aborted") return plain(ctx, texts?.reply || texts?.input || "");
  return line(ctx, error ?? code ?? "The run failed.");
}

function attemptOf(texts: TurnTexts | undefined): Pick<AttentionItem, "attempt"> {
  const { retries = 0 } = texts ?? {};
  return retries === 0 ? {} : { attempt: retries + 1 };
}

export function endedItem(
  ctx: CallContext,
  covers: Covers,
  turn: PlacedTurn & { readonly jobs: readonly string[] },
  texts: TurnTexts | undefined,
): AttentionItem {
  const { runId, sessionKey, agentId, kind, group, code, model, endedAt, label, flowStep, dismissed } = turn;
  const state = group === "waiting" ? group : turn.state;
  const actions: Action[] = [];
  const hasFailed = state === "error" || state === "timeout";
  if (covers.send(sessionKey)) {
    if (hasFailed && flowStep === undefined && !dismissed) actions.push("retry");
    if (kind === "question" || kind === "unanswered") actions.push("answer");
    if (group === "needs_you") actions.push("dismiss");
  }
  return {
    id: `run:${runId}`,
    kind,
    ref: runId,
    since: endedAt,
    summary: endedSummary(ctx, turn, texts),
    actions,
    sessionKey,
    agentId,
    state,
    ...attemptOf(texts),
    ...optional({ code, label: label === undefined ? undefined : line(ctx, label) }),
    ...(hasFailed ? optional({ model }) : {}),
    ...(group === "waiting" ? waitsFor(turn.jobs) : {}),
  };
}

function waitsFor(sessions: readonly string[]): Pick<AttentionItem, "waitingFor" | "waitingForCount"> {
  return sessions.length === 0
    ? {}
    : { waitingFor: sessions.slice(0, AWAITED_MAX), waitingForCount: sessions.length };
}

export function activeItem(
  ctx: CallContext,
  covers: Covers,
  turn: ActiveTurn,
  { texts, awaited }: { texts: TurnTexts | undefined; awaited: ReadonlyMap<string, readonly string[]> },
): AttentionItem {
  const { runId, sessionKey, agentId, state, sinceMs, label, flowStep, hold } = turn;
  return {
    id: `run:${runId}`,
    kind: "run",
    ref: runId,
    since: sinceMs,
    // The input of such a turn is a heading for the model.
    summary: flowStep === "announce" ? "Announces the result." : plain(ctx, texts?.input ?? ""),
    actions: covers.send(sessionKey) ? ["stop"] : [],
    sessionKey,
    agentId,
    state,
    ...attemptOf(texts),
    ...optional({ hold, label: label === undefined ? undefined : line(ctx, label) }),
    ...waitsFor((awaited.get(runId) ?? []).filter(covers.list)),
  };
}
