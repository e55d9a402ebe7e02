// The shape of labels: which texts a session or a chain has read that are from outside, or private.

/** A text that was read. */
export interface Mark {
  /** `<kind> <name>`: `guest telegram:222`, `web example.com`, `mcp mail`, `file notes.md`. */
  readonly source: string;
  /** ms since 1970. */
  readonly since: number;
  /** The run that read it first. Absent: it came with the session. */
  readonly runId?: string;
  /** How it came into the session or the chain that has the mark. */
  readonly arrival?: Arrival;
}

/** The step with which a text came into a session or a chain. */
export interface Arrival {
  /** ms since 1970. */
  readonly at: number;
  /** Absent: a program without runs called a tool. */
  readonly runId?: string;
  /** The call whose result brought it. Absent: it came with the input of the run. */
  readonly callId?: string;
}

/** A run by which a text came. */
export interface PathStep {
  readonly runId: string;
  readonly sessionKey: string;
}

/** A mark whose run is known. */
export interface TracedMark extends Mark {
  /** The session that read the text first. */
  readonly sessionKey: string;
  /** The runs by which the text came, from the one that read it, as far as they are of its chain. */
  readonly path: readonly PathStep[];
}

/**
 * `outside`: nobody among owners, operators and the configuration wrote the text. `private`: the owner holds
 * it private.
 */
export const LABELS = ["outside", "private"] as const;
export type Label = (typeof LABELS)[number];
export type Labels = { readonly [L in Label]?: readonly Mark[] };

/** Kinds of calls by which a text leaves, and `job`, with which an agent acts later. */
export const SINKS = ["fetch", "exec", "message", "mcp", "peer", "node", "session", "job"] as const;
export type SinkKind = (typeof SINKS)[number];

/** The sink of a decision that released a whole session. */
export const NO_SINK = "release";

/** A call that has an effect outside of its session. */
export interface Sink {
  readonly kind: SinkKind;
  /** A host, a place (`telegram:222`), a tool of an MCP server, an agent or a session. */
  readonly to: string;
  /** Everything that leaves, as it was written. */
  readonly payload: string;
  /** Source of a private text that this call itself reads, such as a file. */
  readonly reads?: string;
}

/** A decision about a call of a run that was outside and private. */
export interface LabelDecision {
  readonly id: string;
  /** ms since 1970. */
  readonly at: number;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly runId?: string;
  readonly chainId?: string;
  /** Kind of the call. `release`: an owner released the session. */
  readonly sink: SinkKind | typeof NO_SINK;
  /** A host, a place, a tool, an agent or a session. */
  readonly destination: string;
  /** Beginning of what would leave. */
  readonly payload: string;
  /** The labels of the run. */
  readonly labels: Labels;
  /** `refused`: a setting denied it, or nobody could be asked. `watched`: it was only noted. */
  readonly decision: "allowed" | "denied" | "refused" | "watched";
  /** Name of the person, or the setting or rule that decided. */
  readonly by: string;
}
