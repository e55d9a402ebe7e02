// Prepares a bot for listening: reads its identity, removes a webhook that would receive its messages, and
// publishes its commands.
// TI1: a wrong token is reported as a permanent problem. A failure to publish the commands does not prevent
//      listening.

import { accountName, ListenProblem } from "../../channels/accounts.ts";
import type { ChannelHost } from "../../channels/channel.ts";
import { fieldsOf, textOf } from "../../core/json.ts";
import { head } from "../../core/text/cut.ts";
import { type Bot, type Called, idOf, NO_SERVER_WORDS } from "./bot.ts";
import { failureWords, isTokenWrong } from "./send.ts";
import type { TelegramAccountContext } from "./update.ts";

const START = "start";
const COMMANDS_MAX = 100;
const DESCRIPTION_CHARS_MAX = 256;

/** Returns the bot's commands. Each key is a name that Telegram accepts: `max-age` becomes `max_age`. */
function menuOf(commands: ChannelHost["commands"]): Map<string, string> {
  const named = commands.map(({ name }): [string, string] => [name.toLowerCase().replaceAll("-", "_"), name]);
  return new Map(named.filter(([shown]) => /^[a-z0-9_]{1,32}$/.test(shown)).slice(0, COMMANDS_MAX));
}

/** Returns the result of a call. If the call failed, throws a problem that ends the attempt to listen. */
function takeResult(called: Called<unknown>): ReturnType<typeof fieldsOf> {
  if (called.kind === "done") return fieldsOf(called.value);
  throw new ListenProblem(failureWords(called), called.kind === "refused" && isTokenWrong(called));
}

/**
 * Removes the bot's webhook, because Telegram does not allow a webhook and polling at once. An operator who
 * configures this channel wants the messages here.
 */
async function takeBackMessages(bot: Bot, { world }: ChannelHost, signal: AbortSignal): Promise<void> {
  const hook = takeResult(await bot.call((methods, either) => methods.getWebhookInfo(either), { signal }));
  if (textOf(hook.url) === undefined) return;
  takeResult(await bot.call((methods, either) => methods.deleteWebhook({}, either), { signal }));
  world.log.warn(
    { account: accountName("telegram", bot.accountId) },
    "a web hook of the bot was removed, so that its messages come here",
  );
}

async function showMenu(
  bot: Bot,
  { commands, world }: ChannelHost,
  menu: TelegramAccountContext["menu"],
  signal: AbortSignal,
): Promise<void> {
  const shown = [...menu].map(([command, name]) => {
    const { description = "" } = commands.find((one) => one.name === name) ?? {};
    return { command, description: head(description, DESCRIPTION_CHARS_MAX) || name };
  });
  if (shown.length === 0) return;
  const set = await bot.call((methods, either) => methods.setMyCommands({ commands: shown }, either), {
    signal,
  });
  if (set.kind !== "done") {
    const account = accountName("telegram", bot.accountId);
    world.log.warn({ account, why: failureWords(set) }, "the bot's command menu could not be set");
  }
}

/** Prepares the bot for listening, and returns what is known of it. */
export async function introduce(
  bot: Bot,
  host: ChannelHost,
  signal: AbortSignal,
): Promise<TelegramAccountContext> {
  const me = takeResult(await bot.call((methods, either) => methods.getMe(either), { signal }));
  const [id, username] = [idOf(me.id), textOf(me.username)];
  if (id === undefined || username === undefined) {
    throw new ListenProblem(`${NO_SERVER_WORDS}: check channels.telegram.apiRoot`);
  }
  await takeBackMessages(bot, host, signal);
  const menu = menuOf(host.commands);
  await showMenu(bot, host, menu, signal);
  // Telegram's start button sends `/start`, which is another name for the help.
  if (menu.has("help") && !menu.has(START)) menu.set(START, "help");
  return { accountId: bot.accountId, id, username, menu };
}

/** Returns the bot's name, with a note about Telegram's privacy mode. Throws a `ListenProblem`. */
export async function nameOfBot(bot: Bot): Promise<string> {
  const me = takeResult(await bot.call((methods, signal) => methods.getMe(signal)));
  const name = textOf(me.username);
  if (name === undefined) throw new ListenProblem(NO_SERVER_WORDS);
  const privacy = "; in groups it gets only commands, mentions and replies (privacy mode)";
  return `@${name}${me.can_read_all_group_messages === true ? "" : privacy}`;
}
