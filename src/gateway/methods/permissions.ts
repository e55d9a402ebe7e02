// Owns the methods about agents' permission requests: list the open ones, and answer one.
// A caller who may not see a session sees none of its requests, and answers none.

import { createGate } from "../../access/token.ts";
import { fail, ok } from "../../core/shapes/errors.ts";
import type { PermissionQuestion } from "../../core/shapes/permission.ts";
import { quoted } from "../../core/text/cut.ts";
import type { BasicDeps, CallContext, Methods } from "../call.ts";

interface Permissions {
  list(): readonly PermissionQuestion[];
  /** Returns false if the request is not pending. */
  answer(id: string, decision: "allow" | "deny"): boolean;
}

export interface PermissionDeps extends BasicDeps {
  /** Pending permission requests of agents. Absent if no agent sends such requests. */
  readonly permissions?: Permissions;
}

function open(ctx: CallContext<PermissionDeps>, access: "status" | "send"): PermissionQuestion[] {
  const sees = createGate(ctx.deps.settings, ctx.caller, access);
  return (ctx.deps.permissions?.list() ?? []).filter((question) => sees(question.sessionKey));
}

export const permissionMethods: Methods<"permissions.list" | "permissions.answer", PermissionDeps> = {
  "permissions.list": {
    async handle(ctx) {
      return ok({ permissions: open(ctx, "status") });
    },
  },
  "permissions.answer": {
    async handle(ctx, { id, decision }) {
      const found = open(ctx, "send").some((question) => question.id === id);
      if (found && ctx.deps.permissions?.answer(id, decision) === true) return ok({ ok: true, id, decision });
      return fail("permission_not_found", `there is no open permission request ${quoted(id, 80)}`, {
        hint: "It may have been answered, or have expired; permissions.list lists the open ones.",
      });
    },
  },
};
