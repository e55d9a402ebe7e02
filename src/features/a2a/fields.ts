// Facts about messages over A2A that both of its sides use.

/**
 * Field of a message's metadata: the number of sends that led to the message. It ends circles of agents over
 * several gateways.
 */
export const HOP_FIELD = "parley.hop";

/** Field of a message to a peer: the key of the session that sends it. Its gateway adds the peer's name. */
export const SENDER_FIELD = "parley.from";

/**
 * Field of a message to a peer: milliseconds for which the sending run still waits for the answer. Absent: it
 * does not wait.
 */
export const WAIT_FIELD = "parley.wait";

/** Field of a message's metadata: the chain that it belongs to. */
export const CHAIN_FIELD = "parley.chain";

/**
 * Field of a message's metadata: the tokens that its chain may still use. The chain there is limited to them.
 * Absent: as many as the other side allows.
 */
export const BUDGET_FIELD = "parley.budget";

/**
 * Field of a message to a peer, and of its ended task: the kinds of sources of the labels that its text has
 * (core/rules/labels/peer-labels.ts). Absent: its gateway knows no labels, so the text may be anybody's.
 */
export const LABELS_FIELD = "parley.labels";

/** Field of an ended task's metadata: the tokens that it used. */
export const USAGE_FIELD = "parley.usage";
