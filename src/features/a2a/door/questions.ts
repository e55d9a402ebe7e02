// Shows a client the permission requests of its tasks, and takes its answers.
// AQ1: a client sees and answers only what its token may answer. For every other client the task is working.
// AQ2: an answer names its request, so that nothing is allowed that the client has not seen.
// AQ3: a task that another gateway began asks nobody over A2A: people whom its token does not stand for write
//      there. It is working until an owner here answers.

import { RequestMalformedError } from "@a2a-js/sdk/errors";
import { createGate } from "../../../access/token.ts";
import { mayAnswerPermissions } from "../../../core/rules/scopes.ts";
import { ok, type Result } from "../../../core/shapes/errors.ts";
import {
  asAnswerable,
  type PermissionQuestion,
  type PermissionScope,
} from "../../../core/shapes/permission.ts";
import type { Run } from "../../../core/shapes/run.ts";
import { answerPermission, shortPermissionId } from "../../../flows/permission.ts";
import type { Caller } from "../../../gateway/auth.ts";
import type { BasicDeps, CallContext } from "../../../gateway/call.ts";
import { openPermissions } from "../../../store/queries/permissions.ts";
import { getRun } from "../../../store/queries/runs/runs.ts";

const ANSWER =
  /^\/?(?<decision>allow|deny)\s+(?<id>[\w-]{4,64})(?:\s+(?<scope>once|chain|session|always))?$/i;

/** An open request, with the chain of its run. */
export interface Asked {
  readonly question: PermissionQuestion;
  readonly chainId: string;
}

/** Returns the open requests that this client may answer, oldest first. */
export async function askedOf({ engine, settings }: BasicDeps, caller: Caller): Promise<Asked[]> {
  if (!mayAnswerPermissions(caller)) return [];
  const covers = createGate(settings, caller, "send");
  const { db } = engine.store;
  const open = (await openPermissions(db, engine.now())).filter(({ sessionKey }) => covers(sessionKey));
  const found = open.map(async (question) => {
    const run = await getRun(db, question.runId);
    if (run === undefined) return [];
    return [{ question: asAnswerable(question, caller.patterns === undefined), chainId: run.chainId }];
  });
  return (await Promise.all(found)).flat();
}

/** Returns the oldest of these requests that a task asks its client (AQ3: only gateways count sends). */
export function questionOf(asked: readonly Asked[], { chainId, hop }: Run): PermissionQuestion | undefined {
  return hop > 0 ? undefined : asked.find((one) => one.chainId === chainId)?.question;
}

/** Returns a request in words, with its possible answers. */
export function questionText({ id, title, detail, scopes }: PermissionQuestion): string {
  const short = shortPermissionId(id);
  const wider = scopes.flatMap((scope) => (scope === "once" ? [] : [`"allow ${short} ${scope}"`]));
  const once = scopes.includes("once") ? [`"allow ${short}"`] : [];
  const answers = [...once, ...wider, `"deny ${short}"`].join(", ");
  const more = detail === undefined ? "" : `\n${detail}`;
  return `The agent asks for permission: ${title}${more}\nAnswer this task with one of: ${answers}`;
}

/** Stores a client's answer to the open request of a task. */
export async function answerTask(
  { deps, caller, remember }: CallContext,
  run: Run,
  text: string,
): Promise<Result<string>> {
  const given = ANSWER.exec(text.trim())?.groups;
  const asked = (await askedOf(deps, caller)).filter(({ chainId }) => chainId === run.chainId);
  const id = given?.id?.toLowerCase() ?? "";
  const named = asked.filter(({ question }) => given !== undefined && question.id.startsWith(id));
  const [first] = asked;
  const [one, another] = named;
  if (one === undefined || another !== undefined)
    throw new RequestMalformedError(
      first === undefined ? "the task asks for nothing any more" : questionText(first.question),
    );
  const decision = given?.decision?.toLowerCase() === "allow" ? "allow" : "deny";
  const scope = (given?.scope?.toLowerCase() ?? "once") as PermissionScope;
  const covers = createGate(deps.settings, caller, "send");
  const rights = { covers, everySession: caller.patterns === undefined };
  return deps.engine.commit(async (unit) => {
    const answer = { id: one.question.id, decision, scope, by: caller.id } as const;
    const answered = await answerPermission(unit, answer, rights);
    if (!answered.ok) return answered;
    await remember(unit, run.runId);
    return ok(run.runId);
  });
}
