// Declares the commands of the command line and their options, and runs one of them. To start fast, loads
// only the modules of that command, and the configuration only if the command needs it.
// RN2: wrong usage has exit code 2, and a message that names the option or the command.

import { MessageChannel } from "node:worker_threads";
import { Command, CommanderError } from "commander";
import { optional } from "../core/optional.ts";
import { nearestName } from "../core/text/nearest.ts";
import { FEATURES } from "../features.ts";
import { createCli, EXIT, type GlobalOptions } from "./cli.ts";
import { fileProblem } from "./files.ts";
import type { CliParts } from "./parts.ts";
import { addCommands, type Commands, inputOf, program as programRow, type Row } from "./row.ts";
import { AGENTS } from "./rows/agents.ts";
import { CALL, TOOL } from "./rows/calls.ts";
import { CHANNELS, DELIVERIES } from "./rows/channels.ts";
import { LABEL_COMMANDS } from "./rows/labels.ts";
import * as programs from "./rows/programs.ts";
import { DEVICES, MAY, PERMISSIONS, TOKENS } from "./rows/rights.ts";
import { RUNS, SESSIONS, USAGE } from "./rows/sessions.ts";
import { suggestCommand } from "./suggest.ts";

const HELP_AFTER = `
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 gateway unreachable or connection lost;
parley run: 4 stopped, 5 timed out.
Without a command, parley starts the gateway.
"npx parley-gateway demo" shows the main features in 30 seconds.`;

const SHELLS = ["bash", "zsh", "fish"] as const;

/** Returns all commands, in the order of the help. */
const commandsOf = (root: Command, ofFeatures: Commands): Commands => ({
  chat: programs.CHAT,
  send: programs.SEND,
  run: programs.RUN,
  sessions: { summary: "List, read and change sessions", commands: SESSIONS },
  tool: TOOL,
  call: CALL,
  agents: { summary: "Manage the configured agents", commands: AGENTS },
  usage: USAGE,
  deliveries: {
    summary: "Manage the outbox: pending, sent and failed deliveries",
    commands: DELIVERIES,
  },
  ...ofFeatures,
  channels: { summary: "Manage channel accounts and who may write to them", commands: CHANNELS },
  devices: { summary: "Manage device tokens", commands: DEVICES },
  tokens: { summary: "Manage access tokens for other programs and people", commands: TOKENS },
  may: MAY,
  runs: { summary: "Retry or dismiss the last run of a session", commands: RUNS },
  labels: {
    summary: "Show what sessions have read from outside, and what was decided",
    commands: LABEL_COMMANDS,
  },
  permissions: { summary: "Answer permission requests of agents", commands: PERMISSIONS },
  gateway: programs.GATEWAY,
  status: programs.STATUS,
  logs: programs.LOGS,
  models: programs.MODELS,
  link: programs.LINK,
  store: {
    summary: "Inspect, back up, restore, recover or migrate the store",
    commands: programs.STORE,
  },
  config: {
    summary: "Check, read and change the configuration file",
    commands: programs.CONFIG,
  },
  demo: programs.DEMO,
  completion: programRow({
    summary: "Print a completion script for a shell",
    args: { "<shell>": { choices: SHELLS } },
    async load() {
      const { completionScript } = await import("./completion.ts");
      return async (cli, { shell }) => {
        const script = completionScript(root, shell);
        cli.write(script);
        cli.document({ ok: true, shell, script });
        return EXIT.done;
      };
    },
  }),
});

export async function featureCommands(): Promise<Commands> {
  return Object.assign({}, ...(await Promise.all(FEATURES.map(({ commands }) => commands?.()))));
}

/** The checks of `parley doctor` that features add. */
export const FEATURE_CHECKS = FEATURES.flatMap(({ doctor }) => doctor ?? []);

/** Returns the error for an unknown command of a group. It suggests the command that was probably meant. */
function unknownCommand(group: Command, word: string): CommanderError {
  const names = group.commands.map((command) => command.name());
  const meant = suggestCommand(word, names, group.parent === null ? "" : group.name());
  const guess = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  return new CommanderError(EXIT.usage, "usage", `unknown command "${word}".${guess}`);
}

/**
 * Returns the error to print. An unknown word after a group reaches the group's default command as an
 * argument: reports it as an unknown command. Suggests the choice that was probably meant.
 */
function usageError(program: Command, error: CommanderError): CommanderError {
  const [, given, choices] = /'([^']*)' is invalid.* Allowed choices are (.+)\.$/s.exec(error.message) ?? [];
  if (given !== undefined && choices !== undefined) {
    const meant = nearestName(given, choices.split(", "));
    const guess = meant === undefined ? "" : ` Did you mean "${meant}"?`;
    return new CommanderError(error.exitCode, error.code, `${error.message}${guess}`);
  }
  if (error.code !== "commander.excessArguments") return error;
  const group = program.commands.find((command) => command.name() === program.args[0]);
  const word = group?.args[0];
  if (group === undefined || word === undefined || group.commands.length === 0) return error;
  return group.commands.some((command) => command.name() === word) ? error : unknownCommand(group, word);
}

/**
 * Builds the program with its own commands and those of features. `finish` is called with the exit code of
 * the command, `writeError` with the message for wrong usage.
 */
export function buildProgram(
  parts: CliParts,
  finish: (code: number) => void,
  writeError: (text: string) => void,
  ofFeatures: Commands,
): Command {
  const program = new Command("parley");
  program.description("A small gateway in which AI agents hold sessions and work across them.");
  program.version(parts.machine.version, "-V, --version", "Print the version of this program");
  program.option("--json", "Print one JSON document on standard output");
  program.option(
    "--config <file>",
    "Use this configuration file (default: PARLEY_CONFIG, else ~/.parley/parley.json5)",
  );
  program.option(
    "--url <url>",
    "Connect to this gateway instead of the configured one, like ws://127.0.0.1:7275",
  );
  program.option(
    "--token <token>",
    "Use this token (default: from PARLEY_TOKEN, the configuration or the store directory)",
  );
  program.helpOption("-h, --help", "Show help");
  program.addHelpText("after", HELP_AFTER).helpCommand(false).exitOverride();
  program.configureOutput({
    writeOut: (text) => void parts.stdout.write(text),
    // Only collect the error message here. `runCli` prints it, as JSON if --json is given.
    writeErr: writeError,
  });
  const run = async (row: Row, input: object): Promise<void> => {
    const { json = false, ...given } = program.opts<Partial<GlobalOptions>>();
    const { url } = given;
    const read = url === undefined ? undefined : (await import("./address.ts")).socketUrl(url);
    if (read?.ok === false) throw new CommanderError(EXIT.usage, "usage", read.error);
    const cli = createCli(parts, { json, ...optional(given) });
    finish(await row.run(cli, input as never));
  };
  addCommands(program, commandsOf(program, ofFeatures), (command, row) => {
    command.action(() => run(row, inputOf(command, row)));
  });
  // This call must be last: subcommands that are created after it would inherit the setting.
  program.allowExcessArguments().action(async () => {
    const [word, named] = program.args;
    if (word === undefined) return run(programs.GATEWAY, {});
    if (word !== "help") throw unknownCommand(program, word);
    (program.commands.find((command) => command.name() === named) ?? program).outputHelp();
    finish(EXIT.done);
  });
  return program;
}

/** Runs one command and returns the exit code of the process. `argv`: the words after the program's name. */
export async function runCli(argv: readonly string[], parts: CliParts): Promise<number> {
  let code: number = EXIT.done;
  let errorText = "";
  const program = buildProgram(
    parts,
    (finished) => {
      code = finished;
    },
    (text) => {
      errorText += text;
    },
    await featureCommands(),
  );
  // Keep the process alive: a command may wait for a timer, and the world's timers do not keep the process
  // alive.
  const hold = new MessageChannel();
  hold.port1.ref();
  try {
    await program.parseAsync([...argv], { from: "user" });
    return code;
  } catch (error) {
    const ofFile = fileProblem(error);
    if (ofFile !== undefined) return createCli(parts, { json: argv.includes("--json") }).fail(ofFile);
    if (!(error instanceof CommanderError)) throw error;
    const wrong = usageError(program, error);
    if (error.exitCode === 0) return EXIT.done;
    // Each document of `run` is one line with a type, as those of commands/run.ts.
    const isRun = program.args[0] === "run";
    const cli = createCli(parts, { json: argv.includes("--json") }, isRun ? "end" : undefined);
    // Commander prints the help if a group is called without a subcommand.
    const isHelp = error.code === "commander.help";
    // Redact the message: an argument may be the address of a database, with its password.
    const message = parts.world.redactor.mask(
      isHelp ? errorText.trim() : wrong.message.replace(/^error: /, ""),
    );
    const hint = isHelp ? {} : { hint: 'See "npx parley-gateway --help".' };
    return cli.fail({ code: "usage", error: message, ...hint }, EXIT.usage);
  } finally {
    hold.port1.close();
  }
}
