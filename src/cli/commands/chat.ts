// Implements `parley chat`: chooses or creates the session, runs the conversation, reports how it ended.

import { safeLine } from "../../core/text/safe-text.ts";
import { runConversation } from "../chat/conversation.ts";
import { type Cli, EXIT } from "../cli.ts";
import { type Link, type Reply, withLink } from "../gateway-link.ts";

interface ChatOptions {
  readonly session?: string;
  readonly new?: boolean;
}

async function chooseSession(cli: Cli, link: Link, options: ChatOptions): Promise<Reply<{ key: string }>> {
  if (options.new === true) return link.request("sessions.create", {});
  const key = options.session ?? "main";
  const there = await link.request("sessions.resolve", { key });
  if (there.ok || there.code !== "session_not_found") return there;
  const opened = await link.request("sessions.create", { key });
  if (opened.ok) cli.note(`New session: ${safeLine(opened.value.key)}`);
  return opened;
}

export async function runChat(cli: Cli, _args: readonly string[], options: ChatOptions): Promise<number> {
  const talk = async (link: Link): Promise<number> => {
    const session = await chooseSession(cli, link, options);
    if (!session.ok) return cli.fail(session);
    const { key } = session.value;
    const end = await runConversation(cli, link, key, { fresh: options.new === true });
    if (end.trouble !== undefined) return cli.fail(end.trouble);
    cli.document({ ok: true, sessionKey: key, messages: end.messages });
    return EXIT.done;
  };
  return withLink(cli, talk, true);
}
