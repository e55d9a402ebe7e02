// Owns the answers of the methods about nodes, and the payloads of their events.

/** A device that requests pairing. */
export interface PairRequestRow {
  readonly requestId: string;
  /** The code on the device's screen, for people to compare. */
  readonly code: string;
  readonly nodeId: string;
  readonly displayName: string;
  readonly platform: string;
  readonly version: string;
  readonly caps: readonly string[];
  readonly commands: readonly string[];
  readonly remoteIp: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** A paired node. */
export interface NodeListRow {
  readonly nodeId: string;
  readonly displayName: string;
  readonly platform: string;
  readonly version: string;
  readonly caps: readonly string[];
  /** The commands that it offers. */
  readonly commands: readonly string[];
  readonly paired: true;
  readonly connected: boolean;
  readonly agentId?: string;
  /** Of its own session, which need not exist. */
  readonly sessionKey: string;
  readonly pairedAtMs: number;
  readonly connectedAtMs?: number;
  readonly lastSeenAtMs?: number;
}

export interface NodePairRequested {
  readonly requestId?: string;
  readonly nodeId: string;
  readonly displayName: string;
  readonly platform: string;
  readonly code?: string;
  readonly ts: number;
}

export interface NodePairResolved {
  readonly requestId?: string;
  readonly nodeId: string;
  readonly displayName: string;
  readonly decision: "approved" | "rejected" | "removed";
  readonly ts: number;
}

/** A command for a node. */
export interface NodeInvokeRequest {
  readonly id: string;
  readonly nodeId: string;
  readonly command: string;
  readonly paramsJSON?: string;
  readonly timeoutMs: number;
  readonly idempotencyKey: string;
}

/** Cancels a command: its answer is no longer needed. */
export interface NodeInvokeCancel {
  readonly id: string;
  readonly nodeId: string;
}

interface OneNode {
  readonly ok: true;
  readonly node: NodeListRow;
}

export interface NodePayloads {
  "node.pair.list": {
    readonly ts: number;
    /** Oldest first. */
    readonly pending: readonly PairRequestRow[];
    readonly paired: readonly NodeListRow[];
  };
  "node.pair.approve": OneNode & { readonly requestId: string };
  "node.pair.reject": { readonly ok: true; readonly requestId: string; readonly nodeId: string };
  "node.pair.remove": { readonly ok: true; readonly nodeId: string; readonly removed: true };
  "node.rename": { readonly ok: true; readonly nodeId: string; readonly displayName: string };
  "node.list": { readonly ts: number; readonly nodes: readonly NodeListRow[] };
  /** `allowedCommands`: those of `commands` that the configuration permits. */
  "node.describe": NodeListRow & { readonly ts: number; readonly allowedCommands: readonly string[] };
  "node.invoke": {
    readonly ok: true;
    readonly nodeId: string;
    readonly command: string;
    readonly payload: unknown;
    readonly payloadJSON: string;
  };
  /** `ignored`: the command was no longer pending. */
  "node.invoke.result": { readonly ok: true; readonly ignored?: true };
  "node.event": {
    readonly ok: true;
    /** False: the event starts no run here. */
    readonly handled: boolean;
    readonly runId?: string;
    readonly sessionKey?: string;
  };
}
