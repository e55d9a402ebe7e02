// Opens the paths of A2A, and those on which gateways pair. The protocol is loaded only for a caller that the
// authority admits, or if an agent has a card.

import type { Context } from "hono";
import { once } from "../../../core/once.ts";
import type { HttpParts } from "../../../gateway/http/http.ts";
import { authenticate, type Door, type Env, peerHeader } from "../../../gateway/http/request.ts";
import { createPeerDoors } from "../peers/admission.ts";
import { AGENTS_PATH, PAIR_PATH } from "../peers/peer.ts";

export function createDoor(parts: HttpParts): (c: Context<Env>) => Promise<Response | undefined> {
  const loadDoor = once(async () => new (await import("./door.ts")).A2aDoor(parts));
  const peers = createPeerDoors(parts.deps);
  /** Answers a caller that the authority admits. */
  const answerAdmitted = async (
    c: Context<Env>,
    authority: Parameters<typeof authenticate>[0]["authority"],
    handle: Door,
  ): Promise<Response> => {
    let answer: Response | undefined;
    const refused = await authenticate({ ...parts, authority })(c, async () => {
      answer = await handle(c);
    });
    return (refused ?? answer) as Response;
  };
  return async (c) => {
    const { path, method } = c.req;
    if (path === PAIR_PATH) return method === "POST" ? peers.pair(c) : undefined;
    if (path === AGENTS_PATH)
      return ["GET", "HEAD"].includes(method) ? answerAdmitted(c, peers.authority, peers.agents) : undefined;
    const isPeer = peerHeader(c) !== undefined;
    const isOpen = parts.deps.settings.a2a.expose.length > 0 && !isPeer;
    const card = isOpen ? await (await loadDoor()).open(c) : undefined;
    if (card !== undefined || !path.startsWith("/a2a")) return card;
    return answerAdmitted(c, isPeer ? peers.authority : parts.authority, async (call) =>
      (await loadDoor()).handle(call),
    );
  };
}
