// The announce step of a send: the target's agent writes it, and it is delivered to the target's channel.
// Silence is not delivered. Any other text becomes one outbox row, in the transaction that ends the announce
// turn (I4, I5).

import { announceContext } from "../../core/rules/turn-rules.ts";
import { queueDelivery } from "../delivery/outbox.ts";
import type { FlowContext } from "../flow-context.ts";
import { publishFlow } from "../flow-events.ts";
import { announceRoute, partyOf, provenanceFrom } from "./party.ts";

/** The input of an announce turn; the context holds its subject. */
const ANNOUNCE_INPUT = "Agent-to-agent announce step.";

/**
 * Accepts the announce turn. Returns `limit` if the chain has no run left; any other value is the reason for
 * which there is none.
 */
export async function announceTurn(
  context: FlowContext,
): Promise<"accepted" | "limit" | "no_route" | "refused"> {
  const { acceptor, unit, settings, flow, run, requester, target } = context;
  if (target === undefined || announceRoute(target) === undefined) return "no_route";
  const asker = requester ?? target;
  const chain = { chainId: run.chainId, hop: run.hop };
  const turn = run.flow?.turn ?? 1;
  const accepted = await acceptor.acceptIn(unit, {
    sessionKey: target.key,
    input: {
      text: ANNOUNCE_INPUT,
      provenance: provenanceFrom(asker, chain),
      context: announceContext({
        self: partyOf(settings, target, target),
        requester: partyOf(settings, asker, target),
        request: flow.requestText,
        round1Reply: flow.round1Reply ?? "",
        latestReply: flow.latestReply ?? "",
      }),
    },
    chain,
    flow: { flowId: flow.flowId, step: "announce", turn },
    successor: true,
  });
  if (!accepted.ok) return accepted.code === "chain_limit" ? "limit" : "refused";
  const text = flow.latestReply ?? "";
  const { turnsMax, flowId, requesterKey } = flow;
  const { runId } = accepted.value.run;
  publishFlow(unit, {
    flowId,
    runId,
    step: "announce",
    from: requesterKey,
    to: target.key,
    turn,
    turnsMax,
    text,
  });
  return "accepted";
}

/** Queues the text of the announce turn. Its transcript row already exists. */
export async function deliverAnnouncement(context: FlowContext, text: string): Promise<void> {
  const { target, unit, run } = context;
  const route = target === undefined ? undefined : announceRoute(target);
  if (target === undefined || route === undefined) return;
  await queueDelivery(context, unit, { session: target, route, text, kind: "announce", runId: run.runId });
}

/** Announces without a model call, at a chain limit (I8): writes a transcript row and an outbox row. */
export async function announceByRuntime(context: FlowContext): Promise<void> {
  const { acceptor, unit, settings, flow, requester, target } = context;
  const route = target === undefined ? undefined : announceRoute(target);
  if (target === undefined || route === undefined) return;
  const asker = partyOf(settings, requester ?? target, target).key;
  const text = `Conversation with ${asker} ended at its limit. Latest reply: ${flow.latestReply ?? ""}`;
  await acceptor.acceptIn(unit, {
    sessionKey: target.key,
    kind: "append",
    input: { text, injected: true },
    successor: true,
  });
  await queueDelivery(context, unit, { session: target, route, text, kind: "announce" });
}
