// The shape of the record of a chain: everything that is needed to run the chain again.

import type { Labels } from "../labels.ts";
import type { Entry } from "../message.ts";
import type { Run } from "../run.ts";
import type { Session } from "../session.ts";
import type { Settings } from "../settings/settings.ts";
import type { RevisionKind } from "./revision.ts";

export interface RecordedSession {
  /** The session as it is now, with the transcript that the chain used. */
  readonly session: Session;
  /** The model's context before the chain. */
  readonly before: readonly Entry[];
}

/** An entry that was written while the chain was at work, in the order of the store. */
export interface RecordedEntry {
  readonly sessionKey: string;
  /** Time at which it was stored. */
  readonly at: number;
  /** Run of the chain that wrote it. Absent: another chain, or nobody's run. */
  readonly runId?: string;
  readonly entry: Entry;
}

export interface RecordedRevision {
  readonly hash: string;
  readonly kind: RevisionKind;
  readonly body: unknown;
}

export interface RecordedFlow {
  readonly flowId: string;
  readonly kind: "send" | "spawn";
  readonly requesterKey: string;
  readonly targetKey: string;
  readonly turnsMax: number;
  readonly createdAt: number;
  readonly endedAt?: number;
  readonly endReason?: string;
}

export interface RecordedWait {
  readonly callId: string;
  /** The job that is waited for. Absent: the wait is for a run. */
  readonly flowId?: string;
  readonly waiterRunId: string;
  readonly state: string;
  readonly deadlineAt: number;
}

export interface RecordedRefusal {
  readonly callId: string;
  readonly runId: string;
  readonly tool: string;
  readonly code: string;
  readonly error: string;
  readonly at: number;
}

export interface RecordedDelivery {
  readonly sessionKey: string;
  readonly runId?: string;
  readonly kind: string;
  readonly route: { readonly channel: string; readonly to: string };
  readonly text: string;
  readonly state: string;
  readonly createdAt: number;
}

export interface ChainRecord {
  /** Version of the program that wrote the record. */
  readonly program: string;
  readonly chainId: string;
  /** In the order of their acceptance. */
  readonly runs: readonly Run[];
  readonly sessions: readonly RecordedSession[];
  readonly entries: readonly RecordedEntry[];
  readonly flows: readonly RecordedFlow[];
  readonly waits: readonly RecordedWait[];
  readonly refusals: readonly RecordedRefusal[];
  readonly deliveries: readonly RecordedDelivery[];
  /** Labels of the chain. Absent in the records of programs that knew no labels. */
  readonly labels?: Labels;
  /** The inputs of the runs, as far as they are kept (`store.recordDays`). */
  readonly revisions: readonly RecordedRevision[];
}

/** A chain that was not recorded: a first message to the main session of an agent. */
export interface FirstMessage {
  /** The settings with which all its runs work. */
  readonly settings: Settings;
  readonly agentId: string;
  readonly message: string;
}
