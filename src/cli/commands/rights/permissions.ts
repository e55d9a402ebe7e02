// Implements `parley permissions`: lists and answers the permission requests of agents, and lists and deletes
// the commands that are allowed for longer.

import type { PermissionScope } from "../../../core/shapes/permission.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { withLink } from "../../gateway-link.ts";
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
      cli.line(`${safeLine(id)}  ${safeLine(path)}  (${kind} by ${from})`);
      for (const line of diff.split("\n")) cli.line(`  ${safeLine(line)}`);
    }
    cli.document(answer.value);
    return EXIT.done;
  });
}

async function answer(
  cli: Cli,
  wanted: { id: string; decision: "allow" | "deny"; scope?: PermissionScope },
): Promise<number> {
  return withLink(cli, async (link) => {
    const answered = await link.request("permissions.answer", wanted);
    if (!answered.ok) return cli.fail(answered);
    cli.line(wanted.decision === "allow" ? "Allowed." : "Denied.");
    cli.document(answered.value);
    return EXIT.done;
  });
}

export function allowPermission(
  cli: Cli,
  [id = ""]: readonly string[],
  { scope }: { scope: PermissionScope },
): Promise<number> {
  return answer(cli, { id, decision: "allow", scope });
}

export function denyPermission(cli: Cli, [id = ""]: readonly string[]): Promise<number> {
  return answer(cli, { id, decision: "deny" });
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
