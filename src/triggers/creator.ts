// Owns whose rights a scheduled job has: those of the token that made it, as the configuration has them now.
// CT1: a job runs as an agent only while its creator's token may speak to its session, to that agent and to
//      the place of its replies; asked again at every turn (I13).
// CT2: what is stored names a token and can't be used as one. Nothing is stored for the gateway's own token:
//      its jobs keep all rights, also after it was changed.

import { createHash } from "node:crypto";
import { fail, ok, type Result } from "../core/errors.ts";
import { type CronJob, cronKey } from "../core/schedule.ts";
import type { Settings } from "../core/settings.ts";
import { decideAccess, type Viewer } from "../core/visibility.ts";
import { type AccessContext, accessRulesOf, maySpeakAs, operatorViewer } from "../flows/access.ts";
import { resolvePlace } from "../flows/destination.ts";

/** The name of a token: the same for everybody who has it, and of no use to anybody else. */
export function tokenId(token: string): string {
  return createHash("sha256").update(`caller:${token}`).digest("hex").slice(0, 32);
}

/** Whom a job counts as made by; undefined: by the gateway's own token. */
export function creatorOf(settings: Settings, callerId: string): string | undefined {
  return settings.gateway.tokens.some(({ token }) => tokenId(token) === callerId) ? callerId : undefined;
}

/** The rights of a creator; undefined: its token is not configured any more. */
export function creatorViewer(settings: Settings, createdBy: string): Viewer | undefined {
  const known = settings.gateway.tokens.find(({ token }) => tokenId(token) === createdBy);
  return known === undefined ? undefined : operatorViewer(known.scopes, known.sessions);
}

/** Whether a viewer may have a job run: speak to its session, and to the agent that it runs as. */
export function checkRights(
  settings: Settings,
  viewer: Viewer,
  { id, agentId }: Pick<CronJob, "id" | "agentId">,
): Result<void> {
  const target = { key: cronKey(id), agentId: "", archived: false, ancestors: [] };
  const hint = "See gateway.auth.tokens[].sessions.";
  if (!decideAccess("send", viewer, target, accessRulesOf(settings)).allowed) {
    return fail("not_visible", "the token does not cover the sessions of jobs, cron:<id>", { hint });
  }
  if (maySpeakAs(settings, viewer, agentId)) return ok(undefined);
  return fail("not_visible", `the token does not cover the agent ${agentId}, as which the job runs`, {
    hint,
  });
}

/** Whether a job may run now, with what its creator's token is allowed now (CT1). */
export async function checkCreator(ctx: AccessContext, job: CronJob): Promise<Result<void>> {
  if (job.createdBy === undefined) return ok(undefined);
  const viewer = creatorViewer(ctx.settings, job.createdBy);
  if (viewer === undefined) {
    return fail("not_visible", "the token that made this job was removed from the configuration", {
      hint: "Change the job (cron.update) with a token that may run it, or remove it.",
    });
  }
  const allowed = checkRights(ctx.settings, viewer, job);
  if (!allowed.ok || job.deliver === undefined) return allowed;
  const place = await resolvePlace(ctx, viewer, job.deliver);
  if (place.ok) return ok(undefined);
  return fail(
    "not_visible",
    "the token that made this job may not write to the place of its replies any more",
  );
}
