// Implements `parley agents`: lists the configured agents.

import { type Cli, EXIT } from "../cli.ts";
import { withLink } from "../gateway-link.ts";
import { table } from "../layout.ts";

export async function listAgents(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await link.request("agents.list", {});
    if (!answer.ok) return cli.fail(answer);
    const rows = answer.value.agents.map((agent) => [
      agent.id,
      agent.model,
      agent.default ? "default" : "",
      agent.name ?? "",
    ]);
    for (const line of table(["AGENT", "MODEL", "", "NAME"], rows)) cli.line(line);
    cli.document(answer.value);
    return EXIT.done;
  });
}
