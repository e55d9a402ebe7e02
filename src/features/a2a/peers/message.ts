// Accepts a message of a peer's agent into the main session of an agent here.
// PM1: the message is marked as one of a peer's session (I11). The peer names the session. The name of the
//      peer in its key is the one that this gateway has given it.
// PM2: exposing an agent is not enough: `tools.sessions` and `tools.agentToAgent` must admit the sender, as
//      if it were an agent of this gateway (I9).
// PM3: a sender that waits for an agent which waits for a peer in the same chain is refused (I7).
// PM4: the peer's id of the message makes it one run, however often it is sent (I4).

import { keyRulesOf } from "../../../access/access.ts";
import { resolveSession } from "../../../access/resolve.ts";
import { optional } from "../../../core/optional.ts";
import { readPeerLabels } from "../../../core/rules/labels/peer-labels.ts";
import { messageContext } from "../../../core/rules/turn-rules.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { agentIdInKey, mainKeyOf, peerKey } from "../../../core/shapes/session-key.ts";
import { sendDirect } from "../../../flows/conversation/direct.ts";
import { partyOf } from "../../../flows/conversation/party.ts";
import { chainFrom } from "../../../flows/session/client-session.ts";
import { keyOwnerOf } from "../../../gateway/auth.ts";
import type { CallContext } from "../../../gateway/call.ts";
import { getChain } from "../../../store/queries/chains/chains.ts";
import { callIdOf, type MessageContent } from "../door/message.ts";
import { hasChainWithPeer } from "./store.ts";

/**
 * Returns the chain of a peer's message. It continues a chain of this gateway only if that chain has already
 * been with this peer. Otherwise a peer could use up the limits of any chain.
 */
async function chainOf(ctx: CallContext, peer: string, given: string): Promise<string> {
  const { db } = ctx.deps.engine.store;
  const isNew = (await getChain(db, given)).runs === 0;
  if (isNew || (await hasChainWithPeer(db, { chainId: given, peer, askedBy: keyOwnerOf(ctx.caller) })))
    return given;
  return chainFrom(peer, given);
}

export async function beginOfPeer(
  ctx: CallContext,
  peer: string,
  agentId: string,
  said: MessageContent,
): Promise<Result<string>> {
  const { settings, engine } = ctx.deps;
  const source = said.from === undefined ? undefined : peerKey(peer, said.from);
  const sender = source && agentIdInKey(source);
  if (source === undefined || sender === undefined || ctx.viewer.kind !== "operator")
    return fail("invalid_argument", "the message does not name the session of an agent that sends it");
  const identity = { key: source, agentId: sender, sandboxed: false, sandboxClamp: "all" } as const;
  const viewer = { ...ctx.viewer, as: identity };
  const sessionKey = mainKeyOf(agentId, { ...keyRulesOf(settings), scope: "per-sender" });
  const found = await resolveSession(ctx.access, viewer, "send", { sessionKey });
  if (!found.ok) {
    // The settings of this gateway are not the peer's business.
    ctx.deps.world.log.info({ peer, from: sender, agentId, why: found.error }, "refused a message of a peer");
    return fail("not_visible", `the policy of the peer does not let your agent write to ${agentId}`);
  }
  const session = found.value;
  const { text, images, hop = 1, messageId, waitMs = 0, chainId = engine.newId(), tokensLeft } = said;
  const labels = readPeerLabels(peer, said.labels, engine.now());
  const wait = { chainId, deadlineAt: engine.now() + waitMs };
  const askedBy = keyOwnerOf(ctx.caller);
  const accepted = await sendDirect(ctx.deps, {
    ...{
      session,
      text,
      images,
      labels,
      askedBy,
      hop,
      guest: true,
      chainId: await chainOf(ctx, peer, chainId),
    },
    ...optional({ tokensLeft }),
    extraContext: messageContext({
      requester: { key: source, channel: "unknown" },
      self: partyOf(settings, session, session),
    }),
    callId: callIdOf(askedBy, agentId, messageId),
    peer: { sourceSessionKey: source, ...(waitMs === 0 ? {} : { wait }) },
    remember: (unit, { run }) => ctx.remember(unit, run.runId),
  });
  if (accepted.ok) return ok(accepted.value.run.runId);
  if (accepted.code !== "wait_cycle") return accepted;
  ctx.deps.world.log.info(
    { peer, from: sender, agentId, why: accepted.error },
    "refused a message of a peer",
  );
  return fail("wait_cycle", `${agentId} waits itself for an answer to this request`, {
    hint: "Answer with what you know, or send with timeoutSeconds: 0.",
  });
}
