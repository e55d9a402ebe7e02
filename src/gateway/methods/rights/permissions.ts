// Owns the methods about agents' permission requests: list the open ones, and answer one.
// A caller who may not see a session sees none of its requests, and answers none.

import { createGate } from "../../../access/token.ts";
import { ok } from "../../../core/shapes/errors.ts";
import { answerPermission } from "../../../flows/permission.ts";
import { openPermissions } from "../../../store/queries/permissions.ts";
import type { BasicDeps, Methods } from "../../call.ts";

export const permissionMethods: Methods<"permissions.list" | "permissions.answer", BasicDeps> = {
  "permissions.list": {
    async handle({ access, deps, caller }) {
      const sees = createGate(deps.settings, caller, "status");
      const open = await openPermissions(access.db, deps.engine.now());
      return ok({ permissions: open.filter(({ sessionKey }) => sees(sessionKey)) });
    },
  },
  "permissions.answer": {
    async handle(ctx, { id, decision }) {
      const { deps, caller } = ctx;
      const covers = createGate(deps.settings, caller, "send");
      return deps.engine.commit(async (unit) => {
        const answered = await answerPermission(unit, { id, decision, by: caller.id }, covers);
        if (!answered.ok) return answered;
        const answer = { ok: true, id: answered.value.id, decision } as const;
        await ctx.remember(unit, answer);
        return ok(answer);
      });
    },
  },
};
