// Owns the commands that an operator gives in a chat window: they run at once, and their answer is in the
// transcript.
// CD1: one transaction applies the command, queues its answer in the lane, and stores the request's answer.
// CD2: the command's answer is a note in the transcript, and the result of the request's run. If other runs
// are ahead in the lane, the answer is sent as a live event at once, and written after those runs.
// Only an operator's own messages are commands: the text of a caller that acts as a session always goes to
// the agent.
// CD4: a command needs the rights of the method that does the same.

import type { CommandParts } from "../../channels/commands/context.ts";
import { performCommand } from "../../channels/commands.ts";
import type { PayloadOf } from "../../contract/methods.ts";
import { type CommandCall, type CommandName, parseCommand, rightsFor } from "../../core/rules/command.ts";
import { hasScope } from "../../core/rules/scopes.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { WEBCHAT } from "../../core/shapes/route.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Opening } from "../../flows/session/open.ts";
import { keyOwnerOf } from "../auth.ts";
import { type BasicDeps, type CallContext, commitAnswer, onlyFresh } from "../call.ts";
import { needEverySession } from "./operations.ts";

export type CommandDeps = BasicDeps & CommandParts;

/** Returns whether the caller may give this command, and whether as an owner. */
function checkRights({ caller }: CallContext, command: CommandName): Result<{ isOwner: boolean }> {
  const isOwner = hasScope(caller.scopes, "operator.admin");
  const { scope, everySession } = rightsFor(command);
  if (!hasScope(caller.scopes, scope)) {
    return fail("missing_scope", `/${command} requires the scope ${scope}`);
  }
  const allowed = everySession ? needEverySession(caller, `/${command}`) : ok(undefined);
  return allowed.ok ? ok({ isOwner }) : allowed;
}

/** Returns the command in a caller's message, if it is one. */
export function commandOf({ viewer }: CallContext, message: string): CommandCall | undefined {
  if (viewer.kind !== "operator" || viewer.as !== undefined) return undefined;
  return parseCommand(message, { isOurs: () => false });
}

/** Runs the command, and queues its answer as the run `runId`. */
export async function answerCommand(
  ctx: CallContext<CommandDeps>,
  { session, before }: Opening,
  call: CommandCall & { readonly runId: string },
): Promise<Result<PayloadOf<"chat.send">>> {
  const { deps, viewer } = ctx;
  const { engine } = deps;
  if (viewer.kind !== "operator") return fail("invalid_argument", "only an operator can give commands");
  const rights = checkRights(ctx, call.command);
  if (!rights.ok) return rights;
  const { isOwner } = rights.value;
  const open = engine.accepting();
  if (!open.ok) return open;
  const { command, args } = call;
  return commitAnswer(ctx, async (unit): Promise<Result<PayloadOf<"chat.send">>> => {
    const ready = await before(unit);
    if (!ready.ok) return ready;
    const { text: said } = await performCommand(deps, unit, {
      command,
      args,
      sessionKey: session.key,
      accountId: "",
      operator: viewer,
      sender: { channel: WEBCHAT, id: "operator", isOwner },
      chatType: "direct",
      route: { channel: WEBCHAT, to: session.key },
    });
    const text = `[${safeLine(`/${command} ${args}`.trim())}]\n\n${said}`;
    const accepted = onlyFresh(
      await engine.acceptIn(unit, {
        sessionKey: session.key,
        kind: "append",
        input: { text, injected: true },
        runId: call.runId,
        askedBy: keyOwnerOf(ctx.caller),
        // A full queue must not block a command, because the command may be the one that stops the queued
        // runs.
        successor: true,
      }),
    );
    if (!accepted.ok) return accepted;
    const { run, queuedBehind } = accepted.value;
    const { runId } = run;
    if (queuedBehind > 0)
      unit.publish({ kind: "text", runId, sessionKey: session.key, part: "command", offset: 0, text });
    return ok({ runId, status: "started", reply: unit.redactor.mask(text) });
  });
}
