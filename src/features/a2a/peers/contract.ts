// Defines the methods for peers: other gateways whose agents talk with agents of this one.

import { ADMIN, idempotencyKey, type MethodSpec, NOTHING, name } from "../../../contract/methods/parts.ts";
import { about, list, named, number, type Of, object, oneOf, text } from "../../../contract/schema.ts";
import { PEER_AGENTS_MAX } from "./peer.ts";

const agents = list(name, "Agents of this gateway whose main sessions the peer may write to.", {
  maxItems: PEER_AGENTS_MAX,
});
const peerName = about(name, "Name of the peer here: 1 to 32 of a-z, 0-9, _ and -.");

const PEER = named(
  "PeerEntry",
  "A peer, or an invitation to become one.",
  object(
    {
      name: text("Name of the peer here."),
      state: about(
        oneOf("invited", "expired", "paired", "refused"),
        "refused: paired here, but the peer refuses this gateway: removed there, or its clock differs.",
      ),
      exposes: list(text(), "Agents of this gateway that the peer may write to."),
      offers: list(text(), "Agents of the peer that this gateway may write to."),
    },
    {
      url: text("Address of the peer. Absent: it cannot be reached from here."),
      key: text("Thumbprint of the key that is pinned for the peer."),
      problem: text("Reason why the peer did not answer just now."),
      codeExpiresAtMs: about(number(), "Time at which the pairing code expires."),
    },
  ),
);
export type PeerEntry = Of<typeof PEER>;

const CHANGED = object({ ok: oneOf(true), peer: PEER });

export const PEER_METHODS = {
  "peers.list": {
    scope: ADMIN,
    everySession: true,
    takesLong: true,
    summary: "Lists peers and invitations, and asks each peer for the agents that it offers.",
    params: NOTHING,
    result: object({ ts: number(), peers: list(PEER, "In the order of their names.") }),
  },
  "peers.add": {
    scope: ADMIN,
    everySession: true,
    outlivesToken: true,
    takesLong: true,
    summary:
      "Pairs with the gateway that has made a pairing code. Without a code: makes one, with which another " +
      "gateway can become a peer within ten minutes.",
    params: object(
      { name: peerName },
      {
        agents,
        url: about(name, "Address of the other gateway. Required with a code."),
        code: about(name, "Pairing code of the other gateway."),
        idempotencyKey,
      },
    ),
    result: object(
      { ok: oneOf(true), peer: PEER },
      {
        code: text(
          "The pairing code that was made. It is not stored. Absent if the request is a repetition.",
        ),
      },
    ),
    errors: ["agent_not_found", "peer_unavailable"],
  },
  "peers.update": {
    scope: ADMIN,
    everySession: true,
    outlivesToken: true,
    summary: "Changes the agents that a peer may write to, or its address.",
    params: object({ name: peerName }, { agents, url: about(name, "Address of the peer."), idempotencyKey }),
    result: CHANGED,
    errors: ["agent_not_found"],
  },
  "peers.remove": {
    scope: ADMIN,
    everySession: true,
    summary: "Removes a peer or an invitation. Messages that the peer did not get yet are stopped.",
    params: object({ name: peerName }, { idempotencyKey }),
    result: object({ ok: oneOf(true), name: text() }),
  },
} as const satisfies Record<string, MethodSpec>;
