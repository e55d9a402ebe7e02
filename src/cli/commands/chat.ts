// Implements `parley chat`: chooses or creates the session, opens the screen, runs the conversation, reports
// how it ended.

import { ok } from "../../core/shapes/errors.ts";
import { CHAT_COMMANDS, runConversation } from "../chat/conversation.ts";
import { LineScreen } from "../chat/line-screen.ts";
import type { Screen } from "../chat/screen.ts";
import { sessionChoices } from "../chat/sessions.ts";
import { type Cli, EXIT } from "../cli.ts";
import { type Link, type Reply, withLink } from "../gateway-link.ts";
import { openNamed } from "../session-name.ts";

/** A larger picture is not drawn. */
const PICTURE_MAX_BYTES = 1_000_000;

interface ChatOptions {
  readonly session?: string;
  readonly new?: boolean;
  readonly plain?: boolean;
}

async function chooseSession(cli: Cli, link: Link, options: ChatOptions): Promise<Reply<string>> {
  const { session, new: isNew = false } = options;
  if (!isNew || session !== undefined) return openNamed(cli, link, session ?? "main", { isNew });
  const created = await link.request("sessions.create", {});
  return created.ok ? ok(created.value.key) : created;
}

export async function runChat(cli: Cli, options: ChatOptions): Promise<number> {
  const { isTTY, env } = cli.parts;
  const isSimple = ["", "dumb"].includes(env.TERM ?? "dumb");
  const draws = isTTY && !isSimple && !cli.options.json && options.plain !== true;
  const loading = draws ? import("../chat/full-screen.ts") : undefined;
  const talk = async (link: Link): Promise<number> => {
    const session = await chooseSession(cli, link, options);
    if (!session.ok) return cli.fail(session);
    const key = session.value;
    const full = await loading;
    const screen: Screen =
      full === undefined
        ? new LineScreen(cli)
        : new full.FullScreen(cli, {
            commands: CHAT_COMMANDS,
            async sessions(part) {
              const found = await sessionChoices(link, part, cli.parts.world.clock.now());
              return found.ok ? found.value : [];
            },
            async picture({ sessionKey, messageId, index, bytes }) {
              if (bytes > PICTURE_MAX_BYTES) return undefined;
              const read = await link.request("chat.image", { sessionKey, messageId, index });
              return read.ok ? read.value.content : undefined;
            },
          });
    const first = { key, fresh: options.new === true };
    const end = await runConversation(cli, link, screen, first).finally(() => screen.close());
    if (end.trouble !== undefined) return cli.fail(end.trouble);
    cli.document({ ok: true, sessionKey: key, messages: end.messages });
    return EXIT.done;
  };
  return withLink(cli, talk, true);
}
