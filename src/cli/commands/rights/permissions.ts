// Implements `parley permissions`: lists and answers the permission requests of agents.

import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { withLink } from "../../gateway-link.ts";

export async function listPermissions(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await link.request("permissions.list", {});
    if (!answer.ok) return cli.fail(answer);
    const { permissions } = answer.value;
    if (permissions.length === 0) cli.line(cli.style("dim", "(no pending requests)"));
    for (const { id, sessionKey, title, detail, expiresAt } of permissions) {
      const seconds = Math.max(0, Math.round((expiresAt - cli.parts.world.clock.now()) / 1000));
      cli.line(`${safeLine(id)}  ${safeLine(sessionKey)}  ${safeLine(title)}  (${seconds} s left)`);
      if (detail !== undefined) cli.line(`  ${safeLine(detail)}`);
    }
    cli.document(answer.value);
    return EXIT.done;
  });
}

async function answer(cli: Cli, id: string, decision: "allow" | "deny"): Promise<number> {
  return withLink(cli, async (link) => {
    const answered = await link.request("permissions.answer", { id, decision });
    if (!answered.ok) return cli.fail(answered);
    cli.line(decision === "allow" ? "Allowed." : "Denied.");
    cli.document(answered.value);
    return EXIT.done;
  });
}

export function allowPermission(cli: Cli, [id = ""]: readonly string[]): Promise<number> {
  return answer(cli, id, "allow");
}

export function denyPermission(cli: Cli, [id = ""]: readonly string[]): Promise<number> {
  return answer(cli, id, "deny");
}
