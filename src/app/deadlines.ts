// Maps the kinds of stored deadlines to their handlers. Part of the composition root.

import type { Settings } from "../core/shapes/settings/settings.ts";
import type { DeadlineHandler } from "../engine/deadlines.ts";
import type { Engine } from "../engine/engine.ts";
import { FOLLOW_UP_DEADLINE } from "../engine/run/follow-up.ts";
import { createInboxExpiry, INBOX_DEADLINE } from "../flows/conversation/inbox-receipts.ts";
import { BINDING_DEADLINE, createBindingEnd } from "../flows/delivery/bindings.ts";
import {
  createFilesCleanup,
  INBOUND_DEADLINE,
  INBOUND_FILES_DEADLINE,
} from "../flows/delivery/inbound-files.ts";
import { createChildCleanup } from "../flows/job/archive.ts";
import { removeAttachments } from "../flows/job/attachments.ts";
import { CHILD_DEADLINE } from "../flows/job/end.ts";
import { archiveTemporary, TEMPORARY_DEADLINE } from "../flows/session/client-session.ts";
import { createDeletionResume, DELETION_DEADLINE } from "../flows/session/lifecycle.ts";
import { createScrub, SCRUB_DEADLINE } from "../flows/session/scrub.ts";
import { REVOKED_DEADLINE } from "../gateway/session-tokens.ts";
import type { JsonlCopies } from "../store/sqlite/jsonl-copies.ts";
import type { World } from "../world.ts";
import { featureTimers, isTimerOn } from "./features.ts";
import { createOldRowsCleanup, OLD_ROWS_DEADLINE } from "./old-rows.ts";

/** Returns nothing while no channel receives messages. */
type BurstDue = () => DeadlineHandler | undefined;

interface DeadlineParts {
  readonly settings: Settings;
  readonly world: World;
  readonly jsonlCopies: JsonlCopies;
  /** Returns the engine. A function, because the engine is created later and needs these handlers. */
  engine(): Engine;
}

/** Returns the handlers, by the kind of their deadline. */
export function deadlineHandlers(parts: DeadlineParts): Map<string, DeadlineHandler> {
  const { settings, world, jsonlCopies, engine } = parts;
  const remove = (workspace: string, dir: string): void => {
    removeAttachments(workspace, dir).then(
      (removed) => {
        if (!removed.ok) world.log.warn({ dir, why: removed.error }, "attachments could not be removed");
      },
      (error: unknown) => world.log.error({ err: error, dir }, "attachments could not be removed"),
    );
  };
  const cleanup = createChildCleanup({
    settings,
    dropTranscript: (sessionId) => void jsonlCopies.remove(sessionId),
    removeAttachments: remove,
  });
  return new Map([
    [CHILD_DEADLINE, cleanup],
    [INBOUND_FILES_DEADLINE, createFilesCleanup(settings, remove)],
    [BINDING_DEADLINE, createBindingEnd({ settings })],
    [TEMPORARY_DEADLINE, archiveTemporary],
    [INBOX_DEADLINE, createInboxExpiry({ settings, engine })],
    [FOLLOW_UP_DEADLINE, (unit, key) => engine().followUp(unit, key)],
    [REVOKED_DEADLINE, async () => "done"],
    [
      DELETION_DEADLINE,
      createDeletionResume(() => ({
        engine: engine(),
        settings,
        dropTranscript: (sessionId) => jsonlCopies.remove(sessionId),
      })),
    ],
    [SCRUB_DEADLINE, createScrub(() => engine().store)],
    [OLD_ROWS_DEADLINE, createOldRowsCleanup(settings)],
  ]);
}

/**
 * Returns a function that lets this process handle jobs and incoming messages, if the settings and the parts
 * allow it now. Without a handler, the deadlines stay stored, for a gateway that has it.
 */
export function optionalDeadlines(
  handlers: Map<string, DeadlineHandler>,
  { settings, engine, burstDue }: Pick<DeadlineParts, "settings" | "engine"> & { burstDue: BurstDue },
): () => Promise<void> {
  const timers = featureTimers({ settings, engine });
  const put = (kind: string, handler: DeadlineHandler | undefined): void => {
    if (handler === undefined) handlers.delete(kind);
    else handlers.set(kind, handler);
  };
  return async () => {
    for (const [kind, handler] of timers) put(kind, isTimerOn(kind, settings) ? handler : undefined);
    put(INBOUND_DEADLINE, burstDue());
    engine().lookAtDates();
  };
}
