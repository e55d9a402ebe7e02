// Declares the commands of the command line and their options, and runs one of them. To start fast, loads
// only the modules of that command, and the configuration only if the command needs it.
// RN2: wrong usage has exit code 2, and a message that names the option or the command.

import { MessageChannel } from "node:worker_threads";
import { Argument, Command, CommanderError, Option } from "commander";
import { optional } from "../core/optional.ts";
import { EXPLAINED } from "../core/shapes/explanation.ts";
import { LOG_LEVELS } from "../core/shapes/settings/logging.ts";
import { WAKES } from "../core/shapes/settings/settings.ts";
import { USAGE_GROUPS } from "../core/shapes/usage.ts";
import { createCli, EXIT, type GlobalOptions } from "./cli.ts";
import {
  type Action,
  addAgents,
  addAttention,
  addChannels,
  addCompletion,
  addConfig,
  addCron,
  addDeliveries,
  addDevices,
  addNodes,
  addPeers,
  addPermissions,
  addReplay,
  addRouteOptions,
  addService,
  addSessions,
  addStore,
  addTokens,
  amount,
  type Load,
} from "./groups.ts";
import { PROGRAMS } from "./join/programs.ts";
import type { CliParts } from "./parts.ts";
import { suggestCommand } from "./suggest.ts";

const HELP_AFTER = `
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 gateway unreachable or connection lost;
parley run: 4 stopped, 5 timed out.
Without a command, parley starts the gateway.
"npx parley-gateway demo" shows the main features in 30 seconds.`;

const gateway: Load = async () => (await import("./commands/gateway/gateway.ts")).runGateway;
const invoke = async () => await import("./commands/invoke.ts");

function portNumber(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new CommanderError(EXIT.usage, "usage", `--port must be a number from 0 to 65535, got "${text}"`);
}

function chatPlace(text: string): string {
  if (/^[a-z]+:.+$/.test(text)) return text;
  throw new CommanderError(EXIT.usage, "usage", `--notify must be like telegram:123, got "${text}"`);
}

const OPEN_SIMILAR = "open it if there is none, although a similar name exists";

/** Adds the commands that need a running gateway. */
function addTalking(parent: Command, on: (command: Command, load: Load) => void): void {
  const chat = parent.command("chat").description("Chat with an agent in the terminal");
  chat.option("--session <session>", "Use this session (default: the main session of the default agent)");
  chat.option("--new", `Start a new session; with --session, ${OPEN_SIMILAR}`);
  chat.option("--plain", "Print line by line instead of drawing (default if there is no terminal)");
  on(chat, async () => (await import("./commands/chat.ts")).runChat);
  const send = parent.command("send").argument("<message>");
  send.description("Send a message to a session, or a text to a chat of a channel");
  send.option(
    "--session <session>",
    "Send to this session (with --channel: only record the text in this session)",
  );
  send.option("--new", `With --session, ${OPEN_SIMILAR}`);
  addRouteOptions(send, "Send the text to a chat of this channel, without a run");
  send.option("--to <chat>", "Send to this chat of --channel");
  send.option("--wait <seconds>", "Wait at most this long for the reply and print it", amount("--wait", 0));
  on(send, async () => (await import("./commands/send.ts")).runSend);
  addRun(parent, on);
  addSessions(parent, on);
  addCalls(parent, on);
  addAgents(parent, on);
  addReplay(parent, on);
  const usage = parent.command("usage").description("Show tokens and cost");
  usage.addOption(
    new Option("--by <group>", "Group the usage by this").choices(USAGE_GROUPS).default("agent"),
  );
  usage.option("--days <n>", "Count this many days, including today (UTC)", amount("--days", 1), 30);
  usage
    .option("--agent <id>", "Count only this agent")
    .option("--limit <n>", "Show at most this many lines", amount("--limit", 1), 100);
  on(usage, async () => (await import("./commands/usage.ts")).showUsage);
  addDeliveries(parent, on);
  addCron(parent, on);
  addChannels(parent, on);
  addNodes(parent, on);
  addPeers(parent, on);
  addDevices(parent, on);
  addTokens(parent, on);
  const may = parent.command("may").argument("<viewer>", "Session that wants access");
  may.argument("<target>", "Session to access");
  may.description("Explain whether one session may access another, and name the rule that decides");
  may.addOption(new Option("--access <kind>", "Check only this kind of access").choices(EXPLAINED));
  on(may, async () => (await import("./commands/rights/may.ts")).explainAccess);
  addMcp(parent, on);
  addJoin(parent, on);
  addAttention(parent, on);
  addPermissions(parent, on);
  const acp = parent
    .command("acp")
    .description("Serve sessions to an editor over standard input and output (Agent Client Protocol)");
  acp.addOption(
    new Option("--session <session>", "Open this session instead of new ones").conflicts("agent"),
  );
  acp.option("--agent <id>", "Open sessions of this agent (default: the default agent)");
  on(acp, async () => (await import("./commands/acp.ts")).runAcp);
}

function addRun(parent: Command, on: (command: Command, load: Load) => void): void {
  const run = parent
    .command("run")
    .argument("<question>", "Question to the agent (-: read it from standard input)");
  run.description("Ask an agent one question and print the answer");
  run.addOption(
    new Option("--session <session>", "Ask in this session (default: a new one)").conflicts("agent"),
  );
  run.option("--new", `With --session, ${OPEN_SIMILAR}`);
  run.option("--agent <id>", "Ask this agent (default: the default agent)");
  run.option(
    "--timeout <seconds>",
    "Stop the run after this time (default: none)",
    amount("--timeout", 0.001),
  );
  on(run, async () => (await import("./commands/run.ts")).runQuestion);
}

/** Adds the commands that call a tool or a method. */
function addCalls(parent: Command, on: (command: Command, load: Load) => void): void {
  const tool = parent
    .command("tool")
    .argument("<name>", "Name of the tool")
    .argument("[json]", "Arguments as JSON", "{}");
  tool
    .description("Call a tool as a session does")
    .option("--as <session>", "Use the rights of this session");
  on(tool, async () => (await invoke()).runTool);
  const call = parent
    .command("call")
    .argument("<method>", "Name of the method")
    .argument("[json]", "Parameters as JSON", "{}");
  on(call.description("Call a method of the gateway's protocol"), async () => (await invoke()).runCall);
}

function addMcp(parent: Command, on: (command: Command, load: Load) => void): void {
  const mcp = parent
    .command("mcp")
    .description("Serve the session tools to an MCP client over standard input and output");
  mcp.addOption(
    new Option(
      "--session <session>",
      "Act as this session (default: an external session for this client)",
    ).conflicts(["handle", "agent"]),
  );
  mcp.addOption(new Option("--joined <handle>", "Serve a new window of this joined program"));
  mcp.option("--handle <name>", "Return to the external session with this name (default: the client's name)");
  mcp.option("--agent <id>", "Create the external session for this agent (default: the default agent)");
  on(mcp, async () => (await import("./commands/mcp.ts")).runMcp);
}

/** Adds the commands that join coding agents of this machine, and their hook. */
function addJoin(parent: Command, on: (command: Command, load: Load) => void): void {
  const program = (command: Command): Command =>
    command.addArgument(new Argument("<program>", "Coding agent").choices(PROGRAMS));
  const join = program(parent.command("join"));
  join.description("Make each window of a coding agent in this folder a session that messages can wake");
  join.option("--session <name>", "Name of the session (default: from the program and the folder)");
  const wake = new Option(
    "--wake <how>",
    "When a message arrives for an idle window, notify you, or also continue the window's conversation",
  );
  join.addOption(wake.choices(WAKES));
  join.option(
    "--notify <place>",
    "Chat that gets a notice of waiting messages, like telegram:123",
    chatPlace,
  );
  join.option("--yes", "Change the configuration without asking");
  on(join, async () => (await import("./commands/join.ts")).joinProgram);
  const leave = program(parent.command("leave")).description('Undo "npx parley-gateway join" in this folder');
  leave.option("--yes", "Change the configuration without asking");
  on(leave, async () => (await import("./commands/join.ts")).leaveProgram);
}

/** Adds the commands that show the state of the gateway: status, logs, models. */
function addViews(parent: Command, on: (command: Command, load: Load) => void): void {
  const status = parent.command("status");
  status.description("Show what the gateway does and what needs you, on one screen");
  on(status, async () => (await import("./commands/gateway/status.ts")).showStatus);
  const logs = parent.command("logs").description("Show the newest lines of the gateway's log");
  logs.option("-f, --follow", "Keep printing new lines, also after a restart of the gateway");
  logs.addOption(
    new Option("--level <level>", "Show only this level and higher ones").choices(
      LOG_LEVELS.filter((level) => level !== "silent"),
    ),
  );
  logs.option("--part <part...>", "Show only lines of these parts of the program, like engine or channels");
  logs.option("--run <id>", "Show only lines about this run");
  logs.option("--limit <n>", "Begin with at most this many lines", amount("--limit", 1), 50);
  on(logs, async () => (await import("./commands/gateway/logs.ts")).showLogs);
  const models = parent
    .command("models")
    .description("List the configured models and the sources of their keys");
  models.option("--test", "Also call the models that agents use (each call costs a few tokens)");
  on(models, async () => (await import("./commands/gateway/models.ts")).listModels);
}

function addInit(parent: Command, on: (command: Command, load: Load) => void): void {
  const init = parent
    .command("init")
    .description("Set up a model, a service and a channel, and write the configuration file");
  init.option("--provider <name>", "Use this model provider, like anthropic, ollama, server or offline");
  init.option("--base-url <url>", "Use this address of the provider's API, up to its version");
  init.option("--key-env <name>", "Read the key from this environment variable");
  init.option("--model <id>", "Use this model (default: ask, or the provider's first)");
  init.option("--no-test", "Do not test the model and the channel first");
  init.option("--service", "Install the service").option("--no-service", "Do not install the service");
  init.option("--channel <channel>", "Set up this channel (none: no channel)");
  init.option("--set <key=value...>", "Give these values of the channel");
  init.option("--yes", "Ask nothing: use what was found, and replace an existing file (a copy is kept)");
  on(init, async () => (await import("./commands/init.ts")).runInit);
}

/** Adds the commands for the gateway process, its store and its configuration. */
function addOperations(parent: Command, on: (command: Command, load: Load) => void): void {
  const start = parent.command("gateway").description("Start the gateway in this terminal");
  start.option(
    "--port <n>",
    "Listen on this port instead of the configured one; 0: any free port",
    portNumber,
  );
  start.option("--host <address>", "Listen on this address instead of the configured one");
  on(start, gateway);
  addInit(parent, on);
  addViews(parent, on);
  on(
    parent.command("link").description("Print the link that opens the page and signs in"),
    async () => (await import("./commands/gateway/link.ts")).printLink,
  );
  addStore(parent, on);
  addService(parent, on);
  const moving = parent.command("import").argument("<dir>");
  moving.description("Import an OpenClaw or Clawdbot state directory, without changing it");
  moving.option("--dry-run", "Show what would be imported, and change nothing");
  moving.option(
    "--accept <name...>",
    "Also import these settings or groups of them, which affect security (all: every group)",
  );
  moving.option("--link", "Let agents use the accepted workspaces where they are, instead of copies");
  on(moving, async () => (await import("./commands/gateway/import.ts")).runImport);
  addConfig(parent, on);
  const doctor = parent
    .command("doctor")
    .description("Find problems of this installation and explain how to fix them");
  doctor.option("--offline", "Do not contact models (each call costs a few tokens), channels or MCP servers");
  on(doctor, async () => (await import("./commands/gateway/doctor.ts")).runDoctor);
  on(
    parent.command("demo").description("Play a demo with three agents in a temporary directory"),
    async () => (await import("./commands/demo.ts")).runDemo,
  );
}

/** Sets the description of the command `help`, which the library adds to each group. */
function describeHelp(parent: Command): void {
  for (const group of parent.commands.filter(({ commands }) => commands.length > 0)) {
    group.helpCommand("help [command]", "Show the help of a command");
    describeHelp(group);
  }
}

function globalOptions(program: Command): GlobalOptions {
  const { json, config, url, token } = program.opts<Partial<GlobalOptions>>();
  return {
    json: json === true,
    ...optional({ config, url, token }),
  };
}

async function checkUrl(url: string | undefined): Promise<void> {
  if (url === undefined) return;
  const { socketUrl } = await import("./address.ts");
  const read = socketUrl(url);
  if (!read.ok) throw new CommanderError(EXIT.usage, "usage", read.error);
}

/** Returns the error for an unknown command of a group. It suggests the command that was probably meant. */
function unknownCommand(group: Command, word: string): CommanderError {
  const names = group.commands.map((command) => command.name());
  const meant = suggestCommand(word, names, group.parent === null ? "" : group.name());
  const guess = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  return new CommanderError(EXIT.usage, "usage", `unknown command "${word}".${guess}`);
}

/**
 * Returns the error to print. An unknown word after a group reaches the group's default command as an
 * argument: reports it as an unknown command.
 */
function usageError(program: Command, error: CommanderError): CommanderError {
  if (error.code !== "commander.excessArguments") return error;
  const group = program.commands.find((command) => command.name() === program.args[0]);
  const word = group?.args[0];
  if (group === undefined || word === undefined || group.commands.length === 0) return error;
  return group.commands.some((command) => command.name() === word) ? error : unknownCommand(group, word);
}

/** Starts the gateway if no command is given. Reports an unknown command as wrong usage. */
function defaultAction(program: Command, action: Action): Action {
  return async (cli, args, options) => {
    const [word] = args;
    if (word === undefined) return action(cli, args, options);
    if (word === "help") {
      const named = program.commands.find((command) => command.name() === args[1]) ?? program;
      named.outputHelp();
      return EXIT.done;
    }
    throw unknownCommand(program, word);
  };
}

/**
 * Builds the program. `finish` is called with the exit code of the command, `writeError` with the message for
 * wrong usage.
 */
export function buildProgram(
  parts: CliParts,
  finish: (code: number) => void,
  writeError: (text: string) => void,
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
  const on = (command: Command, load: Load): void => {
    command.action(async () => {
      const cli = createCli(parts, globalOptions(program));
      await checkUrl(cli.options.url);
      const action = await load();
      finish(await action(cli, command.args, command.opts() as never));
    });
  };
  addTalking(program, on);
  addOperations(program, on);
  addCompletion(program, on);
  describeHelp(program);
  // This call must be last: subcommands that are created after it would inherit the setting.
  on(program.allowExcessArguments(), async () => defaultAction(program, await gateway()));
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
  );
  // Keep the process alive: a command may wait for a timer, and the world's timers do not keep the process
  // alive.
  const hold = new MessageChannel();
  hold.port1.ref();
  try {
    await program.parseAsync([...argv], { from: "user" });
    return code;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    const wrong = usageError(program, error);
    if (error.exitCode === 0) return EXIT.done;
    const cli = createCli(parts, { json: argv.includes("--json") });
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
