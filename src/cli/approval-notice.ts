// Tells a user, whose command waits for a run, that an agent of the run asks for permission, so that the wait
// has a reason.

import { safeLine } from "../core/text/safe-text.ts";
import { Approvals } from "./chat/approvals.ts";
import type { Cli } from "./cli.ts";
import type { Link } from "./gateway-link.ts";
import { wholeText } from "./layout.ts";

/**
 * Prints a note on standard error for each open permission request of a session and its sub-agents. Returns
 * the function that ends this.
 */
export function noteApprovals(cli: Cli, link: Link, sessionKey: string): () => void {
  const approvals = new Approvals(link, sessionKey);
  const read = async (): Promise<void> => {
    const question = await approvals.read(0);
    if (question === undefined) return;
    cli.note(`Agent ${safeLine(question.agentId)} asks for permission: ${wholeText(question.title, "  ")}`);
    cli.note(
      safeLine(
        `Answer with: npx parley-gateway permissions allow ${question.id}   (or: deny ${question.id})`,
      ),
    );
  };
  return link.client.on("attention", () => void read());
}
