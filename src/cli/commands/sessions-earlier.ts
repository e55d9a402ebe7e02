// Owns how the conversations of a session before its resets are listed and named on the command line.

import { type Failure, fail, ok } from "../../core/errors.ts";
import type { Message } from "../../core/message.ts";
import { safeLine } from "../../core/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";
import type { Link, Reply } from "../gateway-link.ts";
import { age, table } from "../layout.ts";

export interface HistoryPage {
  /** Absent: the key is a free name. */
  readonly sessionId?: string;
  readonly messages: readonly Message[];
  readonly nextBefore?: string;
  readonly nextAfter?: string;
}

interface Earlier {
  readonly key: string;
  readonly conversations: readonly {
    readonly sessionId: string;
    readonly startedAt: number;
    readonly endedAt: number;
    readonly messages: number;
    readonly title?: string;
  }[];
}

/** Conversations that a number can name. */
const NUMBERED_MAX = 1000;

export function noSession(key: string): Failure {
  return fail("session_not_found", `There is no session ${safeLine(key)}.`, {
    hint: "Run `parley sessions` for the keys that there are.",
  });
}

/** Lists them, the newest as number 1. */
export async function listEarlier(cli: Cli, link: Link, key: string): Promise<number> {
  const found = await link.call<Earlier>("sessions.earlier", { key, limit: NUMBERED_MAX });
  if (!found.ok) return cli.fail(found);
  const { conversations } = found.value;
  const nowMs = cli.parts.world.clock.now();
  if (conversations.length === 0) cli.line("There are no earlier conversations in this session.");
  else {
    const rows = conversations.map(({ sessionId, startedAt, endedAt, messages, title = "" }, index) => [
      String(index + 1),
      `${age(startedAt, nowMs)} ago`,
      `${age(endedAt, nowMs)} ago`,
      String(messages),
      sessionId,
      title,
    ]);
    for (const line of table(["NO", "STARTED", "ENDED", "MESSAGES", "SESSION ID", "BEGINS"], rows))
      cli.line(line);
    cli.note(`Show one: parley sessions history ${safeLine(key)} --earlier 1`);
  }
  cli.document(found.value);
  return EXIT.done;
}

/** The conversation that a number of that list or a session id names; none of them: the one in force. */
export async function chooseConversation(
  link: Link,
  key: string,
  which: string | undefined,
): Promise<Reply<{ sessionId?: string }>> {
  if (which === undefined) return ok({});
  if (!/^\d{1,4}$/.test(which)) return ok({ sessionId: which });
  const found = await link.call<Earlier>("sessions.earlier", { key, limit: NUMBERED_MAX });
  if (!found.ok) return found;
  const { conversations } = found.value;
  const chosen = conversations[Number(which) - 1];
  if (chosen !== undefined) return ok({ sessionId: chosen.sessionId });
  return fail(
    "session_not_found",
    `There is no earlier conversation ${which}; there are ${conversations.length}.`,
    {
      hint: `List them: parley sessions history ${safeLine(key)} --earlier`,
    },
  );
}
