// The shape of a peer: another Parley gateway whose agents talk with agents of this one.

export const PAIR_PATH = "/peer/pair";
/** Path at which a peer asks which agents it may see. */
export const AGENTS_PATH = "/peer/agents";

/** A peer, or an invitation that nobody has used yet. */
export interface Peer {
  /** Its name here. The other gateway does not know this name. */
  readonly name: string;
  /** Address of the other gateway. Absent: it reaches this gateway, but cannot be reached from here. */
  readonly url?: string;
  /** Its public key, as a JSON Web Key. Absent: the invitation was not used yet. */
  readonly key?: Readonly<Record<string, unknown>>;
  /** Thumbprint (RFC 7638) of its key. Present if `key` is. */
  readonly keyId?: string;
  /** The secret of the pairing code, while the code is valid. */
  readonly codeKey?: string;
  readonly codeExpiresAt?: number;
  /** Agents of this gateway whose main sessions the peer may write to. */
  readonly exposes: readonly string[];
  /** Agents of the peer that this gateway may write to, as the peer last named them. */
  readonly offers: readonly string[];
  readonly createdAt: number;
}

export type PairedPeer = Peer & Required<Pick<Peer, "key" | "keyId">>;

export const PEERS_MAX = 64;
/** Maximum number of agents that one side names. */
export const PEER_AGENTS_MAX = 64;

export function isPaired(peer: Peer): peer is PairedPeer {
  return peer.key !== undefined && peer.keyId !== undefined;
}
