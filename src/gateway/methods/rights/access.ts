// Owns the method that answers "may A do this to B?" with the deciding rule.
// The token must cover both sessions, and the answer names only sessions that the token covers (I9).

import { accessRulesOf, operatorKey, sessionViewer, visibilityOf } from "../../../access/access.ts";
import { explainAccess } from "../../../access/explain.ts";
import { spawnChainOf } from "../../../access/spawn-chain.ts";
import { createGate } from "../../../access/token.ts";
import { optional } from "../../../core/optional.ts";
import { NOT_VISIBLE } from "../../../core/rules/visibility.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { EXPLAINED } from "../../../core/shapes/explanation.ts";
import type { Session } from "../../../core/shapes/session.ts";
import { agentIdInKey } from "../../../core/shapes/session-key.ts";
import { getSession } from "../../../store/queries/sessions/sessions.ts";
import type { CallContext, Methods } from "../../call.ts";

interface Named {
  readonly key: string;
  readonly session?: Session | undefined;
}

async function find(ctx: CallContext, text: string): Promise<Result<Named>> {
  const key = operatorKey(ctx.deps.settings, text);
  if (!key.ok) return key;
  if (!createGate(ctx.deps.settings, ctx.caller, "list")(key.value)) {
    const setting = "gateway.auth.tokens[].sessions";
    return fail("not_visible", `the token does not cover session ${key.value}: see ${setting}`);
  }
  return ok({ key: key.value, session: await getSession(ctx.access.db, key.value) });
}

function facts({ key, session }: Named) {
  const agentId = session?.agentId ?? agentIdInKey(key);
  return {
    key,
    exists: session !== undefined,
    ...optional({ agentId }),
    ...(session?.archivedAt === undefined ? {} : { archived: true as const }),
  };
}

export const accessMethods: Methods<"access.explain"> = {
  "access.explain": {
    async handle(ctx, params) {
      const viewer = await find(ctx, params.viewer);
      if (!viewer.ok) return viewer;
      const { key, session } = viewer.value;
      if (session === undefined) {
        return fail(
          "session_not_found",
          `there is no session ${JSON.stringify(key)}, so its access can't be explained`,
        );
      }
      const target = await find(ctx, params.target);
      if (!target.ok) return target;
      const { settings } = ctx.deps;
      const covers = createGate(settings, ctx.caller, "list");
      const identity = sessionViewer(await spawnChainOf(ctx.access.db, session), settings);
      const { mode, agentToAgent } = accessRulesOf(settings);
      const answers = await explainAccess(ctx.access, {
        viewer: session,
        target: target.value,
        accesses: params.access === undefined ? EXPLAINED : [params.access],
        now: ctx.deps.world.clock.now(),
        redactor: ctx.deps.world.redactor,
        showKey: (one) => (covers(one) ? one : NOT_VISIBLE),
      });
      return ok({
        viewer: { ...facts(viewer.value), sandboxed: identity.kind === "session" && identity.sandboxed },
        target: facts(target.value),
        visibility: { configured: mode, effective: visibilityOf(ctx.access, identity) },
        agentToAgent,
        answers,
      });
    },
  },
};
