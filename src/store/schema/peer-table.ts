// Declares the columns of the table of peers.

/** Another gateway that is a peer, or an invitation to become one. */
export interface PeerTable {
  name: string;
  /** Null: the peer cannot be reached from here. */
  url: string | null;
  /** Public key as a JSON Web Key. Null: the invitation was not used yet. */
  key_json: string | null;
  key_id: string | null;
  /** Secret of the pairing code. */
  code_key: string | null;
  code_expires_at: number | null;
  exposes_json: string;
  offers_json: string;
  created_at: number;
}
