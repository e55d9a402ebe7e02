// Owns the command line: which commands there are, their options, and that each is loaded only when it is
// called.
// RN1: a command's module, and the configuration, are loaded only by a command that needs them.
// RN2: wrong usage is exit code 2, in words that name the option or the command.

import { MessageChannel } from "node:worker_threads";
import { Command, CommanderError, Option } from "commander";
import { EXPLAINED } from "../core/explanation.ts";
import { closestKeys } from "../core/session-key.ts";
import { USAGE_GROUPS } from "../core/usage.ts";
import { createCli, EXIT, type GlobalOptions } from "./cli.ts";
import {
  type Action,
  addChannels,
  addCompletion,
  addCron,
  addDeliveries,
  addDevices,
  addNodes,
  addPermissions,
  addPlace,
  addService,
  addSessions,
  addStore,
  amount,
  type Load,
} from "./groups.ts";
import type { CliParts } from "./parts.ts";

const HELP_AFTER = `
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no gateway reachable, or lost in the middle.
Without a command: start the gateway. "parley demo" shows everything in half a minute.`;

const gateway: Load = async () => (await import("./commands/gateway.ts")).runGateway;
const invoke = async () => await import("./commands/invoke.ts");

function portNumber(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new CommanderError(EXIT.usage, "usage", `--port must be a number from 0 to 65535, got "${text}"`);
}

/** The commands that talk to a running gateway. */
function addTalking(parent: Command, on: (command: Command, load: Load) => void): void {
  const chat = parent.command("chat").description("talk to an agent in the terminal");
  chat.addOption(
    new Option("--session <key>", "which session (default: the default agent's main one)").conflicts("new"),
  );
  chat.option("--new", "a new session");
  on(chat, async () => (await import("./commands/chat.ts")).runChat);
  const send = parent.command("send").argument("<message>");
  send.description("say one thing to a session, or send a text to a chat of a channel");
  send.option("--session <key>", "to which session; with --channel: where the text is written down");
  addPlace(send, "send it as it is to people on this channel, without a run");
  send.option("--to <chat>", "of --channel: the chat");
  send.option("--wait <seconds>", "wait this long for the reply and print it", amount("--wait", 0));
  on(send, async () => (await import("./commands/send.ts")).runSend);
  addSessions(parent, on);
  const tool = parent.command("tool").argument("<name>").argument("[json]", "arguments as JSON", "{}");
  tool.description("call a tool as a session would").option("--as <key>", "with this session's rights");
  on(tool, async () => (await invoke()).runTool);
  const call = parent.command("call").argument("<method>").argument("[json]", "params as JSON", "{}");
  on(call.description("call a method of the gateway's protocol"), async () => (await invoke()).runCall);
  on(
    parent.command("agents").description("the configured agents"),
    async () => (await import("./commands/agents.ts")).listAgents,
  );
  const usage = parent.command("usage").description("what was consumed: tokens and money");
  usage.addOption(new Option("--by <what>", "a line for each").choices(USAGE_GROUPS).default("agent"));
  usage.option("--days <n>", "of so many days, today included (UTC)", amount("--days", 1), 30);
  usage
    .option("--agent <id>", "only this agent's")
    .option("--limit <n>", "most lines", amount("--limit", 1), 100);
  on(usage, async () => (await import("./commands/usage.ts")).showUsage);
  addDeliveries(parent, on);
  addCron(parent, on);
  addChannels(parent, on);
  addNodes(parent, on);
  addDevices(parent, on);
  const may = parent.command("may").argument("<viewer>").argument("<target>");
  may.description("what one session may do to another, and the rule that decides");
  may.addOption(new Option("--access <what>", "only this").choices(EXPLAINED));
  on(may, async () => (await import("./commands/may.ts")).explainAccess);
  addMcp(parent, on);
  addPermissions(parent, on);
  const acp = parent.command("acp").description("let an editor open sessions, over this command's streams");
  acp.addOption(new Option("--session <key>", "open this one instead of new ones").conflicts("agent"));
  acp.option("--agent <id>", "whose sessions (default: the default agent's)");
  on(acp, async () => (await import("./commands/acp.ts")).runAcp);
}

function addMcp(parent: Command, on: (command: Command, load: Load) => void): void {
  const mcp = parent
    .command("mcp")
    .description("the session tools for an MCP client that starts this command");
  mcp.addOption(
    new Option("--session <key>", "act as this session (default: a session of the client's own)").conflicts([
      "handle",
      "agent",
    ]),
  );
  mcp.option("--handle <name>", "the name under which the client comes back (default: its own name)");
  mcp.option("--agent <id>", "whose external session it is (default: the default agent's)");
  on(mcp, async () => (await import("./commands/mcp.ts")).runMcp);
}

function addHouse(parent: Command, on: (command: Command, load: Load) => void): void {
  const start = parent.command("gateway").description("start the gateway in this terminal");
  start.option("--port <n>", "instead of the configured port; 0: any free one", portNumber);
  start.option("--host <address>", "instead of the configured address");
  on(start, gateway);
  on(
    parent.command("link").description("the link that opens the page and signs in"),
    async () => (await import("./commands/link.ts")).printLink,
  );
  addStore(parent, on);
  addService(parent, on);
  const moving = parent.command("import").argument("<dir>");
  moving.description("take over an OpenClaw or Clawdbot state directory, which stays as it is");
  moving.option("--dry-run", "say what would be done, and do nothing");
  moving.option("--accept <name...>", "take over these settings that need your trust, or all of them: all");
  on(moving, async () => (await import("./commands/import.ts")).runImport);
  const config = parent.command("config").description("the configuration file");
  on(
    config.command("check").description("say what is wrong with it, or what it amounts to"),
    async () => (await import("./commands/config-check.ts")).checkConfig,
  );
  const schema = config.command("schema").description("its JSON Schema, for completion in an editor");
  schema.option("--write <file>", "into this file instead of standard output");
  on(schema, async () => (await import("./commands/config-schema.ts")).printSchema);
  const doctor = parent.command("doctor").description("find out what does not work, and how to mend it");
  doctor.option("--offline", "ask no model (which costs a few tokens), no channel and no tool server");
  on(doctor, async () => (await import("./commands/doctor.ts")).runDoctor);
  on(
    parent
      .command("demo")
      .description("the main ideas one after another, with three agents in a temporary directory"),
    async () => (await import("./commands/demo.ts")).runDemo,
  );
}

function globalOptions(program: Command): GlobalOptions {
  const { json, config, url, token } = program.opts<Partial<GlobalOptions>>();
  return {
    json: json === true,
    ...(config === undefined ? {} : { config }),
    ...(url === undefined ? {} : { url }),
    ...(token === undefined ? {} : { token }),
  };
}

async function checkUrl(url: string | undefined): Promise<void> {
  if (url === undefined) return;
  const { socketUrl } = await import("./address.ts");
  const read = socketUrl(url);
  if (!read.ok) throw new CommanderError(EXIT.usage, "usage", read.error);
}

/** Without a command the gateway starts; a word that is no command is a mistake. */
function onlyKnown(program: Command, action: Action): Action {
  return async (cli, args, options) => {
    const [word] = args;
    if (word === undefined) return action(cli, args, options);
    if (word === "help") {
      const named = program.commands.find((command) => command.name() === args[1]) ?? program;
      named.outputHelp();
      return EXIT.done;
    }
    const [nearest] = closestKeys(
      word,
      program.commands.map((command) => command.name()),
      1,
    );
    const guess = nearest === undefined ? "" : ` Did you mean "${nearest}"?`;
    throw new CommanderError(EXIT.usage, "usage", `there is no command "${word}".${guess}`);
  };
}

/** The program; `finish` gets the exit code of the command that was called. */
export function buildProgram(
  parts: CliParts,
  finish: (code: number) => void,
  tell: (text: string) => void,
): Command {
  const program = new Command("parley");
  program.description("A small gateway in which AI agents hold sessions and work across them.");
  program.version(parts.machine.version, "-V, --version", "this program's version");
  program.option("--json", "one JSON document on standard output");
  program.option(
    "--config <file>",
    "configuration file (default: PARLEY_CONFIG, else ~/.parley/parley.json5)",
  );
  program.option("--url <url>", "another gateway than the configured one, like ws://127.0.0.1:7275");
  program.option(
    "--token <token>",
    "its token (default: PARLEY_TOKEN, the configuration, the store directory)",
  );
  program.addHelpText("after", HELP_AFTER).helpCommand(false).exitOverride();
  program.configureOutput({
    writeOut: (text) => void parts.stdout.write(text),
    // runCli knows whether it has to be JSON.
    writeErr: tell,
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
  addHouse(program, on);
  addCompletion(program, on);
  // Last: commands take over what their program allows when they are made.
  on(program.allowExcessArguments(), async () => onlyKnown(program, await gateway()));
  return program;
}

/** Runs one command and says how the process should end. `argv` is what stands behind the program's name. */
export async function runCli(argv: readonly string[], parts: CliParts): Promise<number> {
  let code: number = EXIT.done;
  let told = "";
  const program = buildProgram(
    parts,
    (finished) => {
      code = finished;
    },
    (text) => {
      told += text;
    },
  );
  // The world's timers don't keep a process alive, and a command that waits for one must not end in the
  // middle.
  const hold = new MessageChannel();
  hold.port1.ref();
  try {
    await program.parseAsync([...argv], { from: "user" });
    return code;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return EXIT.done;
    const cli = createCli(parts, { json: argv.includes("--json") });
    // A group of commands that was given none of them says which there are.
    const isHelp = error.code === "commander.help";
    // An argument may be the address of a database.
    const message = parts.world.redactor.mask(isHelp ? told.trim() : error.message.replace(/^error: /, ""));
    const hint = isHelp ? {} : { hint: 'See "parley --help".' };
    return cli.fail({ code: "usage", error: message, ...hint }, EXIT.usage);
  } finally {
    hold.port1.close();
  }
}
