// Owns what a bot does before it listens: it finds out who it is, takes its messages back from a web hook,
// and tells the platform its commands.
// TI1: a bot whose token is wrong says so, and that it lasts.
// TI2: what only decorates, such as the menu, stops nobody from listening.

import { fail, ok, type Result } from "../../core/errors.ts";
import { fieldsOf } from "../../core/json.ts";
import { accountName, ListenProblem } from "../accounts.ts";
import type { ChannelHost } from "../channel.ts";
import { textOf } from "../fields.ts";
import { type Bot, type Called, NO_SERVER_WORDS } from "./bot.ts";
import { idOf } from "./fields.ts";
import { failureWords, isTokenWrong } from "./send.ts";
import type { Reader } from "./update.ts";

const START = "start";
const COMMANDS_MAX = 100;
const DESCRIPTION_CHARS_MAX = 256;

/** Commands by the name that the platform can show: `max-age` is `max_age` there. */
function menuOf(commands: ChannelHost["commands"]): Map<string, string> {
  const named = commands.map(({ name }): [string, string] => [name.toLowerCase().replaceAll("-", "_"), name]);
  return new Map(named.filter(([shown]) => /^[a-z0-9_]{1,32}$/.test(shown)).slice(0, COMMANDS_MAX));
}

/** The button that everybody presses first says `/start`: it asks what can be said. */
function withStart(menu: Reader["menu"]): Reader["menu"] {
  return menu.has("help") && !menu.has(START) ? new Map([...menu, [START, "help"]]) : menu;
}

/** What the platform says, or a problem that ends the attempt to listen. */
function wanted(called: Called<unknown>): ReturnType<typeof fieldsOf> {
  if (called.kind === "done") return fieldsOf(called.value);
  throw new ListenProblem(failureWords(called), called.kind === "refused" && isTokenWrong(called));
}

/** Web hook and fetching exclude each other: whoever sets up this channel wants its messages here. */
async function takeBackMessages(bot: Bot, { world }: ChannelHost, signal: AbortSignal): Promise<void> {
  const hook = wanted(await bot.call((methods, either) => methods.getWebhookInfo(either), { signal }));
  if (textOf(hook.url) === undefined) return;
  wanted(await bot.call((methods, either) => methods.deleteWebhook({}, either), { signal }));
  world.log.warn(
    { account: accountName("telegram", bot.accountId) },
    "a web hook of the bot was removed: messages come here",
  );
}

async function showMenu(
  bot: Bot,
  { commands, world }: ChannelHost,
  menu: Reader["menu"],
  signal: AbortSignal,
): Promise<void> {
  const shown = [...menu].map(([command, name]) => {
    const { description = "" } = commands.find((one) => one.name === name) ?? {};
    return { command, description: description.slice(0, DESCRIPTION_CHARS_MAX).toWellFormed() || name };
  });
  if (shown.length === 0) return;
  const set = await bot.call((methods, either) => methods.setMyCommands({ commands: shown }, either), {
    signal,
  });
  if (set.kind !== "done") {
    const account = accountName("telegram", bot.accountId);
    world.log.warn({ account, why: failureWords(set) }, "the bot's menu of commands could not be set");
  }
}

/** Makes ready to listen, and tells who does; nothing when it was stopped meanwhile. */
export async function introduce(
  bot: Bot,
  host: ChannelHost,
  signal: AbortSignal,
): Promise<Reader | undefined> {
  try {
    return await begin(bot, host, signal);
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

async function begin(bot: Bot, host: ChannelHost, signal: AbortSignal): Promise<Reader> {
  const me = wanted(await bot.call((methods, either) => methods.getMe(either), { signal }));
  const [id, username] = [idOf(me.id), textOf(me.username)];
  if (id === undefined || username === undefined) {
    throw new ListenProblem(`${NO_SERVER_WORDS}: look at channels.telegram.apiRoot`);
  }
  await takeBackMessages(bot, host, signal);
  const menu = menuOf(host.commands);
  await showMenu(bot, host, menu, signal);
  return { accountId: bot.accountId, id, username, menu: withStart(menu) };
}

/** The bot's name, and what it does not see. */
export async function nameOfBot(bot: Bot): Promise<Result<string>> {
  const asked = await bot.call((methods, signal) => methods.getMe(signal));
  if (asked.kind !== "done") return fail("channel_failed", failureWords(asked));
  const { username, can_read_all_group_messages } = fieldsOf(asked.value);
  const name = textOf(username);
  if (name === undefined) return fail("channel_failed", NO_SERVER_WORDS);
  const privacy = "; in groups it is shown commands, mentions and replies only (privacy mode)";
  return ok(`@${name}${can_read_all_group_messages === true ? "" : privacy}`);
}
