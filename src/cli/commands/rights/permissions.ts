// Implements `parley permissions`: lists and answers the permission requests of agents, and lists and deletes
// the commands that are allowed for longer.

import { fail, ok } from "../../../core/shapes/errors.ts";
import { lastingWords, type PermissionScope } from "../../../core/shapes/permission.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { openPrompter } from "../../channels/prompter.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { type Link, type Reply, withLink } from "../../gateway-link.ts";
import { wholeText } from "../../layout.ts";

export async function listPermissions(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await link.request("permissions.list", {});
    if (!answer.ok) return cli.fail(answer);
    const { permissions, instructions } = answer.value;
    if (permissions.length + instructions.length === 0) cli.line(cli.style("dim", "(no pending requests)"));
    for (const { id, sessionKey, title, detail, expiresAt } of permissions) {
      const seconds = Math.max(0, Math.round((expiresAt - cli.parts.world.clock.now()) / 1000));
      cli.line(`${safeLine(id)}  ${safeLine(sessionKey)}  ${wholeText(title, "  ")}  (${seconds} s left)`);
      if (detail !== undefined) cli.line(`  ${wholeText(detail, "  ")}`);
    }
    for (const { id, path, kind, source, sessionKey, diff } of instructions) {
      const from = `${safeLine(sessionKey)}, outside content: ${safeLine(source)}`;
      cli.line(`${safeLine(id)}  ${safeLine(path)}  (${safeLine(kind)} by ${from})`);
      for (const line of diff.split("\n")) cli.line(`  ${safeLine(line)}`);
    }
    cli.document(answer.value);
    return EXIT.done;
  });
}

async function answer(
  cli: Cli,
  link: Link,
  wanted: { id: string; decision: "allow" | "deny"; scope?: PermissionScope },
): Promise<number> {
  const answered = await link.request("permissions.answer", wanted);
  if (!answered.ok) return cli.fail(answered);
  const { ruleId } = answered.value;
  const done = wanted.decision === "allow" ? "Allowed." : "Denied.";
  const undo = `Allowed from now on. Undo with: npx parley-gateway permissions forget ${ruleId}`;
  cli.line(ruleId === undefined ? done : undo);
  cli.document(answered.value);
  return EXIT.done;
}

/** Asks whether to allow a command for longer than once, and shows the command. */
async function confirmed(
  cli: Cli,
  link: Link,
  id: string,
  scope: Exclude<PermissionScope, "once">,
): Promise<Reply<boolean>> {
  const listed = await link.request("permissions.list", {});
  if (!listed.ok) return listed;
  const [question, ...more] = listed.value.permissions.filter((one) => one.id.startsWith(id));
  // The gateway refuses such an id with the reason.
  if (question === undefined || more.length > 0) return ok(true);
  cli.note(`${safeLine(lastingWords(question, scope))}\n  ${wholeText(question.title, "  ")}`);
  if (!cli.parts.isTTY || cli.options.json)
    return fail("invalid_argument", `The scope ${scope} needs --yes where no terminal can ask.`);
  const answer = await (await openPrompter(cli.parts)).confirm("Allow it from now on?");
  return answer.ok || answer.code === "cancelled" ? ok(answer.ok && answer.value) : answer;
}

export function allowPermission(
  cli: Cli,
  [id = ""]: readonly string[],
  { scope, yes = false }: { scope: PermissionScope; yes?: boolean },
): Promise<number> {
  return withLink(cli, async (link) => {
    const agreed = scope === "once" || yes ? ok(true) : await confirmed(cli, link, id, scope);
    if (!agreed.ok) return cli.fail(agreed, EXIT.usage);
    if (!agreed.value) return cli.fail({ code: "cancelled", error: "Nothing was allowed." });
    return answer(cli, link, { id, decision: "allow", scope });
  });
}

export function denyPermission(cli: Cli, [id = ""]: readonly string[]): Promise<number> {
  return withLink(cli, (link) => answer(cli, link, { id, decision: "deny" }));
}

export async function listPermissionRules(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await link.request("permissions.rules", {});
    if (!answer.ok) return cli.fail(answer);
    const { rules } = answer.value;
    if (rules.length === 0) cli.line(cli.style("dim", "(no commands)"));
    for (const { id, agentId, sessionKey, scope, command, folder } of rules) {
      const where = scope === "always" ? `agent ${agentId}` : sessionKey;
      cli.line(`${safeLine(id)}  ${safeLine(where)}  ${wholeText(command, "  ")}  (in ${safeLine(folder)})`);
    }
    cli.document(answer.value);
    return EXIT.done;
  });
}

export async function forgetRule(cli: Cli, [id = ""]: readonly string[]): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await link.request("permissions.forget", { id });
    if (!answer.ok) return cli.fail(answer);
    cli.line("Forgotten. The next call of the command asks again.");
    cli.document(answer.value);
    return EXIT.done;
  });
}
