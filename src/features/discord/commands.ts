// Publishes the bot's menu of slash commands on Discord.
// DS1: the menu is written only if it differs from Parley's commands, because Discord limits the number of
//      updates.
// DS2: if the menu cannot be written, a warning is logged. Everything else works without the menu.

import type { ChannelHost } from "../../channels/channel.ts";
import { type Fields, numberOf, objectsOf, textOf } from "../../core/json.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Rest } from "./rest.ts";

/** Discord's limits: number of commands, and short lower-case names. */
const COMMANDS_MAX = 100;
const NAME = /^[a-z0-9_-]{1,32}$/;
const DESCRIPTION_CHARS_MAX = 100;
const ARGUMENT_CHARS_MAX = 1_500;

/** Discord's numbers for the types: a slash command, and an option that is a text. */
const SLASH = 1;
const TEXT_OPTION = 3;
/** Discord's numbers for the contexts: in servers, and in direct messages with the bot. */
const CONTEXTS = [0, 1];

type Commands = ChannelHost["commands"];

function menuOf(commands: Commands) {
  return commands
    .filter(({ name }) => NAME.test(name))
    .slice(0, COMMANDS_MAX)
    .map(({ name, description }) => ({
      name,
      description: head(description, DESCRIPTION_CHARS_MAX).trim() || "A command",
      type: SLASH,
      contexts: CONTEXTS,
      options: [
        {
          type: TEXT_OPTION,
          name: "text",
          description: "Arguments of the command",
          required: false,
          max_length: ARGUMENT_CHARS_MAX,
        },
      ],
    }));
}

/** Returns a text that is different for different commands, so that commands can be compared. */
function looks(command: Fields): string {
  const options = objectsOf(command.options, COMMANDS_MAX).map((option) => [
    textOf(option.name),
    numberOf(option.type),
    numberOf(option.max_length),
  ]);
  return JSON.stringify([textOf(command.name), textOf(command.description), options]);
}

/** Writes the menu if it differs from Parley's commands. */
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
    host.world.log.warn({ channel: "discord" }, `the command menu was not updated: ${why}`);
  }
}
