// Owns whose rights a scheduled job or a paired node has: those of the token that made or paired it, as the
// configuration has them now. Web hooks have no creator: only the configuration makes one.
// CT1: a job or a node sets off a run only while its creator's token may speak to the session, to its agent
//      and to the place of its replies; asked again at every turn and every event (I13).
// CT2: what is stored names a token and can't be used as one. Nothing is stored for the gateway's own token:
//      its jobs and nodes keep all rights, also after it was changed.

import { createHash } from "node:crypto";
import { fail, ok, type Result } from "../core/errors.ts";
import type { Route } from "../core/route.ts";
import { type CronJob, cronKey } from "../core/schedule.ts";
import type { Settings } from "../core/settings.ts";
import { decideAccess, type Viewer } from "../core/visibility.ts";
import { type AccessContext, accessRulesOf, maySpeakAs, operatorViewer } from "../flows/access.ts";
import { resolvePlace } from "../flows/destination.ts";

/** The name of a token: the same for everybody who has it, and of no use to anybody else. */
export function tokenId(token: string): string {
  return createHash("sha256").update(`caller:${token}`).digest("hex").slice(0, 32);
}

/** A run that a job or a node is about to set off. */
export interface CreatedTurn {
  readonly by: "job" | "node";
  /** Absent: the gateway's own token made it. */
  readonly createdBy?: string | undefined;
  readonly sessionKey: string;
  readonly agentId: string;
  /** Where its reply goes besides the transcript. */
  readonly deliver?: Route | undefined;
}

const WORDS = {
  job: {
    made: "made this job",
    runs: "as which the job runs",
    hint: "Change the job (cron.update) with a token that may run it, or remove it.",
  },
  node: {
    made: "paired this node",
    runs: "to which the node speaks",
    hint: "Remove the node, and pair it again with a token that covers them.",
  },
} as const;

/** The turn of a job. */
export function turnOfJob(job: Pick<CronJob, "id" | "agentId" | "createdBy" | "deliver">): CreatedTurn {
  const { id, agentId, createdBy, deliver } = job;
  return { by: "job", sessionKey: cronKey(id), agentId, createdBy, deliver };
}

/** Whom a job or a node counts as made by; undefined: by the gateway's own token. */
export function creatorOf(settings: Settings, callerId: string): string | undefined {
  return settings.gateway.tokens.some(({ token }) => tokenId(token) === callerId) ? callerId : undefined;
}

/** The rights of a creator; undefined: its token is not configured any more. */
export function creatorViewer(settings: Settings, createdBy: string): Viewer | undefined {
  const known = settings.gateway.tokens.find(({ token }) => tokenId(token) === createdBy);
  return known === undefined ? undefined : operatorViewer(known.scopes, known.sessions);
}

/** Whether a viewer may have this run set off: speak to its session, and to its agent. */
export function checkRights(
  settings: Settings,
  viewer: Viewer,
  { by, sessionKey, agentId }: CreatedTurn,
): Result<void> {
  const target = { key: sessionKey, agentId: "", archived: false, ancestors: [] };
  const hint = "See gateway.auth.tokens[].sessions.";
  if (!decideAccess("send", viewer, target, accessRulesOf(settings)).allowed) {
    const sessions = by === "job" ? "the sessions of jobs, cron:<id>" : `the session ${sessionKey}`;
    return fail("not_visible", `the token does not cover ${sessions}`, { hint });
  }
  if (maySpeakAs(settings, viewer, agentId)) return ok(undefined);
  const text = `the token does not cover the agent ${agentId}, ${WORDS[by].runs}`;
  return fail("not_visible", text, { hint });
}

/** Whether the run may be set off now, with what its creator's token is allowed now (CT1). */
export async function checkCreator(ctx: AccessContext, turn: CreatedTurn): Promise<Result<void>> {
  if (turn.createdBy === undefined) return ok(undefined);
  const { made, hint } = WORDS[turn.by];
  const viewer = creatorViewer(ctx.settings, turn.createdBy);
  if (viewer === undefined) {
    return fail("not_visible", `the token that ${made} was removed from the configuration`, { hint });
  }
  const allowed = checkRights(ctx.settings, viewer, turn);
  if (!allowed.ok || turn.deliver === undefined) return allowed;
  const place = await resolvePlace(ctx, viewer, turn.deliver);
  if (place.ok) return ok(undefined);
  return fail("not_visible", `the token that ${made} may not write to the place of its replies`, { hint });
}
