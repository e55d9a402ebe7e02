// Owns what was agreed when a sub-agent was spawned: written once, with its session, and never changed.

import type { Route } from "./route.ts";

/** The files that came with a job, as its caller is told and the session remembers; no contents (I14). */
export interface AttachmentReceipt {
  /** Relative to the child's workspace: `.parley/attachments/<uuid>`. */
  readonly dir: string;
  readonly files: readonly { readonly name: string; readonly bytes: number; readonly sha256: string }[];
}

export interface SpawnFacts {
  readonly flowId: string;
  /** The child's first run. */
  readonly runId: string;
  readonly requesterKey: string;
  /** The requester's transcript at the spawn: another one later means that it was reset. */
  readonly requesterSessionId: string;
  /** Where the requester's people read, captured at the spawn. */
  readonly route?: Route;
  /** The place that was made for it or given to it: its replies go there, its result as the first of them. */
  readonly thread?: Route;
  readonly announce: "post" | "wake";
  readonly cleanup: "delete" | "keep";
  readonly mode: "run" | "session";
  /** From the end of the last run; 0: never. */
  readonly archiveAfterMinutes: number;
  /** The child must run contained, whatever the settings say later (I13). */
  readonly sandboxed: boolean;
  readonly attachments?: AttachmentReceipt;
  /** Where the requester would have liked them: a hint that is kept, and told to the child. */
  readonly mountPath?: string;
  /** Attachments stay until the session is deleted. */
  readonly retainAttachments?: boolean;
}
