// Names of peers: other Parley gateways whose agents talk with agents of this one.

const PEER_NAME = /^[a-z0-9][a-z0-9_-]{0,31}$/;
const AGENT_OF_PEER = "peer:";

/** Returns whether a text can be the name of a peer: it is part of session keys and of policy patterns. */
export function isPeerName(text: string): boolean {
  return PEER_NAME.test(text);
}

/** Returns the id by which policies and lists know an agent of a peer. */
export function peerAgentId(peer: string, agentId: string): string {
  return `${AGENT_OF_PEER}${peer}/${agentId}`;
}

/** Returns whether an agent id, or a pattern for agent ids, is one of peers. */
export function isPeerAgentId(text: string): boolean {
  return text.startsWith(AGENT_OF_PEER);
}
