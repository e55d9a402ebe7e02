// Owns the bot's menu of slash commands on Discord.
// DS1: the menu is written only when it differs: Discord counts how often that happens.
// DS2: a menu that can't be written is a line in the log: everything else works without it.

import { safeLine } from "../../core/safe-text.ts";
import type { ChannelHost } from "../channel.ts";
import { type Fields, objectsOf, textOf } from "../fields.ts";
import { numberOf } from "./fields.ts";
import type { Rest } from "./rest.ts";

/** What Discord takes: so many, each with a short name in small letters. */
const COMMANDS_MAX = 100;
const NAME = /^[a-z0-9_-]{1,32}$/;
const DESCRIPTION_CHARS_MAX = 100;
const ARGUMENT_CHARS_MAX = 1_500;

/** Numbers of the platform: a command of the slash, an option of text. */
const SLASH = 1;
const TEXT_OPTION = 3;
/** In servers, and in direct messages with the bot itself. */
const CONTEXTS = [0, 1];

type Commands = ChannelHost["commands"];

const descriptionOf = (text: string): string => text.slice(0, DESCRIPTION_CHARS_MAX).trim() || "A command";

function menuOf(commands: Commands) {
  return commands
    .filter(({ name }) => NAME.test(name))
    .slice(0, COMMANDS_MAX)
    .map(({ name, description }) => ({
      ...{ name, description: descriptionOf(description), type: SLASH, contexts: CONTEXTS },
      options: [
        {
          ...{ type: TEXT_OPTION, name: "text", description: "What to say with it", required: false },
          max_length: ARGUMENT_CHARS_MAX,
        },
      ],
    }));
}

/** What makes a command another one, as one text. */
function looks(command: Fields): string {
  const options = objectsOf(command.options, COMMANDS_MAX).map((option) => [
    textOf(option.name),
    numberOf(option.type),
    numberOf(option.max_length),
  ]);
  return JSON.stringify([textOf(command.name), textOf(command.description), options]);
}

/** Makes the menu what it should be. */
export async function writeMenu(rest: Rest, host: ChannelHost, signal: AbortSignal): Promise<void> {
  const menu = menuOf(host.commands);
  try {
    const { id } = await rest.ask((api, inner) => api.applications.getCurrent({ signal: inner }), signal);
    const there = await rest.ask(
      (api, inner) => api.applicationCommands.getGlobalCommands(id, {}, { signal: inner }),
      signal,
    );
    const before = objectsOf(there, COMMANDS_MAX).map(looks).sort();
    const after = menu.map((command) => looks(command)).sort();
    if (JSON.stringify(before) === JSON.stringify(after)) return;
    await rest.ask(
      (api, inner) => api.applicationCommands.bulkOverwriteGlobalCommands(id, menu, { signal: inner }),
      signal,
    );
  } catch (error) {
    if (signal.aborted) return;
    const why = safeLine(error instanceof Error ? error.message : String(error));
    host.world.log.warn({ channel: "discord" }, `the menu of commands was not written: ${why}`);
  }
}
