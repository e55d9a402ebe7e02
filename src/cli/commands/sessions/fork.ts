// Forks a session: makes a session that continues its conversation after one of its messages.

import { optional } from "../../../core/optional.ts";
import { fail, ok } from "../../../core/shapes/errors.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import type { Link, Reply } from "../../gateway-link.ts";
import { count } from "../../layout.ts";
import { withSession } from "../../session-name.ts";

interface ForkOptions {
  readonly at?: string;
  readonly label?: string;
}

/** Returns the id of the newest message of a session. */
async function newestOf(link: Link, sessionKey: string): Promise<Reply<string>> {
  const page = await link.request("chat.history", { sessionKey, limit: 1 });
  if (!page.ok) return page;
  const id = page.value.messages.at(-1)?.id;
  return id === undefined
    ? fail("message_not_found", `The session ${safeLine(sessionKey)} has no messages yet.`)
    : ok(id);
}

/** Describes the work that stays with the original session. Returns undefined if there is none. */
function keptWork(left: { runs: number; jobs: number; waits: number }): string | undefined {
  const { runs, jobs, waits } = left;
  const kinds: [number, string][] = [
    [runs, "run"],
    [jobs, "sub-agent job"],
    [waits, "wait"],
  ];
  const parts = kinds.filter(([number]) => number > 0).map(([number, name]) => count(number, name));
  return parts.length === 0
    ? undefined
    : `Not part of the fork: ${parts.join(", ")} of the original session.`;
}

export async function forkSession(cli: Cli, args: readonly string[], options: ForkOptions): Promise<number> {
  return withSession(cli, args[0] ?? "", async (link, sessionKey) => {
    const at = options.at === undefined ? await newestOf(link, sessionKey) : ok(options.at);
    if (!at.ok) return cli.fail(at);
    const params = { sessionKey, at: at.value, ...optional({ label: options.label }) };
    const forked = await link.request("sessions.fork", params);
    if (!forked.ok) return cli.fail(forked);
    const { key, leftBehind } = forked.value;
    cli.line(safeLine(`Forked: ${key}`));
    const kept = keptWork(leftBehind);
    if (kept !== undefined) cli.note(kept);
    cli.note(`Continue it: npx parley-gateway chat --session ${safeLine(key)}`);
    cli.document(forked.value);
    return EXIT.done;
  });
}
