// The settings of a spawn. They are stored once, with the session of the sub-agent, and never change.

import type { Route } from "./route.ts";

/**
 * List of the files attached to a job, without their contents (I14). The caller and the sub-agent receive it.
 */
export interface AttachmentReceipt {
  /** Relative to the workspace of the child: `.parley/attachments/<uuid>`. */
  readonly dir: string;
  /** Files in the folder: name, size in bytes, and hash of the content in hex. */
  readonly files: readonly { readonly name: string; readonly bytes: number; readonly sha256: string }[];
}

/** Ways to announce a result. The settings choose one of the first two, a call any of them. */
export const ANNOUNCE_WAYS = ["post", "wake", "none", "parent", "channel"] as const;

export interface SpawnFacts {
  readonly flowId: string;
  /** First run of the child. */
  readonly runId: string;
  readonly requesterKey: string;
  /**
   * Id of the requester's transcript at the time of the spawn. If it is different later, the requester was
   * reset.
   */
  readonly requesterSessionId: string;
  /** Route to the people of the requester at the time of the spawn. */
  readonly route?: Route;
  /** Thread of the sub-agent, new or existing. The result and later replies are sent there. */
  readonly thread?: Route;
  readonly announce: (typeof ANNOUNCE_WAYS)[number];
  readonly cleanup: "delete" | "keep";
  readonly mode: "run" | "session";
  /** Minutes between the end of the last run and the archiving of the session. 0: never. */
  readonly archiveAfterMinutes: number;
  /** True if the child must run in a sandbox, even if the settings change later (I13). */
  readonly sandboxed: boolean;
  readonly attachments?: AttachmentReceipt;
  /** True if attachments remain until the session is deleted. */
  readonly retainAttachments?: boolean;
}
