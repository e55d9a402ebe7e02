// Implements `parley sessions earlier`: lists the earlier conversations of a session (each reset ends one).
// Also finds one by its number or session id.

import { fail, ok } from "../../../core/shapes/errors.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import type { Link, Reply } from "../../gateway-link.ts";
import { age, table } from "../../layout.ts";
import { withSession } from "../../session-name.ts";

/** Maximum number of conversations in the list. It is also the highest number by which one can be chosen. */
const NUMBERED_MAX = 1000;

/** Prints the earlier conversations. Number 1 is the newest. */
export function listEarlier(cli: Cli, [name = ""]: readonly string[]): Promise<number> {
  return withSession(cli, name, (link, key) => printEarlier(cli, link, key));
}

async function printEarlier(cli: Cli, link: Link, key: string): Promise<number> {
  const found = await link.request("sessions.earlier", { key, limit: NUMBERED_MAX });
  if (!found.ok) return cli.fail(found);
  const { conversations } = found.value;
  const nowMs = cli.parts.world.clock.now();
  if (conversations.length === 0) cli.line("This session has no earlier conversations.");
  else {
    const rows = conversations.map(({ sessionId, startedAt, endedAt, messages, title = "" }, index) => [
      String(index + 1),
      `${age(startedAt, nowMs)} ago`,
      `${age(endedAt, nowMs)} ago`,
      String(messages),
      sessionId,
      title,
    ]);
    for (const line of table(["NO", "STARTED", "ENDED", "MESSAGES", "SESSION ID", "TITLE"], rows))
      cli.line(line);
    cli.note(`Show one: npx parley-gateway sessions history ${safeLine(key)} --earlier 1`);
  }
  cli.document(found.value);
  return EXIT.done;
}

/**
 * Returns the session id of a conversation. `which`: its number in the list, its session id, or undefined for
 * the current conversation, for which no id is returned.
 */
export async function chooseConversation(
  link: Link,
  key: string,
  which: string | undefined,
): Promise<Reply<{ sessionId?: string }>> {
  if (which === undefined) return ok({});
  if (!/^\d{1,4}$/.test(which)) return ok({ sessionId: which });
  const found = await link.request("sessions.earlier", { key, limit: NUMBERED_MAX });
  if (!found.ok) return found;
  const { conversations } = found.value;
  const chosen = conversations[Number(which) - 1];
  if (chosen !== undefined) return ok({ sessionId: chosen.sessionId });
  return fail(
    "session_not_found",
    `There is no earlier conversation ${which}; this session has ${conversations.length}.`,
    {
      hint: `List them: npx parley-gateway sessions earlier ${safeLine(key)}`,
    },
  );
}
