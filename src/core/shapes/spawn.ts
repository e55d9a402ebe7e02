// The terms of a spawn: stored once with the session of the sub-agent, and never changed.

import type { Route } from "./route.ts";

/** The attached files of a job as its caller and the session see them, without contents (I14). */
export interface AttachmentReceipt {
  /** Relative to the workspace of the child: `.parley/attachments/<uuid>`. */
  readonly dir: string;
  /** The files in it, each with its size in bytes and the hash of its content in hex. */
  readonly files: readonly { readonly name: string; readonly bytes: number; readonly sha256: string }[];
}

export interface SpawnFacts {
  readonly flowId: string;
  /** The child's first run. */
  readonly runId: string;
  readonly requesterKey: string;
  /**
   * The transcript of the requester at the spawn. A different one later means that the requester was reset.
   */
  readonly requesterSessionId: string;
  /** Route of the requester's people at the time of the spawn. */
  readonly route?: Route;
  /** The thread for the sub-agent, created or existing: its replies go there, the result first. */
  readonly thread?: Route;
  readonly announce: "post" | "wake";
  readonly cleanup: "delete" | "keep";
  readonly mode: "run" | "session";
  /** Minutes after the end of the last run; 0: never. */
  readonly archiveAfterMinutes: number;
  /** The child must run in a sandbox, whatever the settings say later (I13). */
  readonly sandboxed: boolean;
  readonly attachments?: AttachmentReceipt;
  /** Path that the requester suggested: a hint that is stored and passed to the child. */
  readonly mountPath?: string;
  /** Attachments remain until the session is deleted. */
  readonly retainAttachments?: boolean;
}
