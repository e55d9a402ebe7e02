// Implements `parley chat`: chooses or creates the session, opens the screen, runs the conversation, reports
// how it ended.

import { ok } from "../../core/shapes/errors.ts";
import { CHAT_COMMANDS, runConversation } from "../chat/conversation.ts";
import { LineScreen } from "../chat/line-screen.ts";
import type { Screen } from "../chat/screen.ts";
import { sessionChoices } from "../chat/sessions.ts";
import type { Picture } from "../chat/view.ts";
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

/** Returns whether the terminal can draw, and the user did not forbid it. */
function canDraw({ parts, options }: Cli, plain: boolean): boolean {
  const { TERM = "dumb" } = parts.env;
  return parts.isTTY && !options.json && !plain && !["", "dumb"].includes(TERM);
}

async function pictureOf(link: Link, picture: Picture): Promise<string | undefined> {
  const { sessionKey, messageId, index, bytes } = picture;
  if (bytes > PICTURE_MAX_BYTES) return undefined;
  const read = await link.request("chat.image", { sessionKey, messageId, index });
  return read.ok ? read.value.content : undefined;
}

export async function runChat(cli: Cli, _args: readonly string[], options: ChatOptions): Promise<number> {
  const draws = canDraw(cli, options.plain === true);
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
            picture: (picture) => pictureOf(link, picture),
          });
    const first = { key, fresh: options.new === true };
    const end = await runConversation(cli, link, screen, first).finally(() => screen.close());
    if (end.trouble !== undefined) return cli.fail(end.trouble);
    cli.document({ ok: true, sessionKey: key, messages: end.messages });
    return EXIT.done;
  };
  return withLink(cli, talk, true);
}
