// Owns the methods about agents' permission requests and changed instruction files: list the open ones,
// answer one, and list and delete the commands that are allowed for longer.
// A caller who may not see a session sees none of its requests and rules, and answers and deletes none. A
// caller who may only look at them sees them redacted.

import { createGate, seesEverything } from "../../../access/token.ts";
import { optional } from "../../../core/optional.ts";
import { hasScope, mayAnswerPermissions } from "../../../core/rules/scopes.ts";
import { NOT_VISIBLE } from "../../../core/rules/visibility.ts";
import { ok } from "../../../core/shapes/errors.ts";
import {
  asAnswerable,
  type InstructionChange,
  type PermissionRule,
} from "../../../core/shapes/permission.ts";
import { answerRequest, listInstructionChanges } from "../../../flows/instructions.ts";
import { forgetRule } from "../../../flows/permission.ts";
import { listRules } from "../../../store/queries/permission-rules.ts";
import { openPermissions } from "../../../store/queries/permissions.ts";
import type { Caller } from "../../auth.ts";
import { type BasicDeps, type CallContext, commitAnswer, type Methods } from "../../call.ts";
import type { ToolDeps } from "../tools.ts";

type Names = "permissions.list" | "permissions.answer" | "permissions.rules" | "permissions.forget";

/**
 * Returns a rule as this caller may see it. Its creator is a person or another token, so a token for some
 * sessions reads only its own name.
 */
function ruleRow({ world }: BasicDeps, caller: Caller, rule: PermissionRule): PermissionRule {
  const isKnown = rule.createdBy === caller.id || seesEverything(caller);
  const command = mayAnswerPermissions(caller) ? rule.command : world.redactor.mask(rule.command);
  return { ...rule, command, createdBy: isKnown ? world.redactor.mask(rule.createdBy) : NOT_VISIBLE };
}

export type PermissionDeps = BasicDeps & Pick<ToolDeps, "guidance">;

/** Returns the changes of instruction files that wait, if the caller may answer about them. */
export async function waitingChanges({
  access,
  deps,
  caller,
}: CallContext<PermissionDeps>): Promise<readonly InstructionChange[]> {
  const mayAnswer = hasScope(caller.scopes, "operator.admin") && seesEverything(caller);
  return mayAnswer ? listInstructionChanges(access.db, deps) : [];
}

export const permissionMethods: Methods<Names, PermissionDeps> = {
  "permissions.list": {
    async handle(ctx) {
      const { access, deps, caller } = ctx;
      const sees = createGate(deps.settings, caller, "status");
      const open = await openPermissions(access.db, deps.engine.now());
      const permissions = open
        .filter(({ sessionKey }) => sees(sessionKey))
        .map((question) => asAnswerable(question, caller.patterns === undefined));
      return ok({
        permissions: mayAnswerPermissions(caller) ? permissions : deps.world.redactor.all(permissions),
        instructions: [...(await waitingChanges(ctx))],
      });
    },
  },
  "permissions.answer": {
    async handle(ctx, { id, decision, scope = "once", content }) {
      const { deps, caller } = ctx;
      const covers = createGate(deps.settings, caller, "send");
      const rights = { covers, everySession: caller.patterns === undefined };
      const answer = { id, decision, scope, content, by: caller.id };
      return commitAnswer(ctx, async (unit) => {
        const { settings, guidance } = deps;
        const parts = hasScope(caller.scopes, "operator.admin") ? { settings, guidance } : { settings };
        const answered = await answerRequest(unit, parts, answer, rights);
        if (!answered.ok) return answered;
        const made = optional({ ruleId: answered.value.ruleId });
        return ok({ ok: true, id: answered.value.id, decision, scope, ...made });
      });
    },
  },
  "permissions.rules": {
    async handle({ access, deps, caller }) {
      const sees = createGate(deps.settings, caller, "status");
      const rules = (await listRules(access.db)).filter(({ sessionKey }) => sees(sessionKey));
      return ok({ rules: rules.map((rule) => ruleRow(deps, caller, rule)) });
    },
  },
  "permissions.forget": {
    async handle(ctx, { id }) {
      const { deps, caller } = ctx;
      const covers = createGate(deps.settings, caller, "send");
      return commitAnswer(ctx, async (unit) => {
        const forgotten = await forgetRule(unit, id, covers);
        if (!forgotten.ok) return forgotten;
        return ok({ ok: true, id: forgotten.value.id });
      });
    },
  },
};
