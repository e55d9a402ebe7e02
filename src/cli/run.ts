// Owns the command line: which commands there are, their options, and that each is loaded only when it is
// called.
// RN1: a command's module, and the configuration, are loaded only by a command that needs them.
// RN2: wrong usage is exit code 2, in words that name the option or the command.

import { Command, CommanderError, Option } from "commander";
import { EXPLAINED } from "../core/explanation.ts";
import { redactSecrets } from "../core/redact.ts";
import { closestKeys } from "../core/session-key.ts";
import { USAGE_GROUPS } from "../core/usage.ts";
import { type Cli, createCli, EXIT, type GlobalOptions } from "./cli.ts";
import type { CliParts } from "./parts.ts";

/** Each command knows the type of its own options; what they are made of is declared below, next to it. */
type Action = (cli: Cli, args: readonly string[], options: never) => Promise<number>;
type Load = () => Promise<Action>;

const HELP_AFTER = `
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no gateway reachable.
Without a command: start the gateway. "parley demo" shows everything in half a minute.`;

const gateway: Load = async () => (await import("./commands/gateway.ts")).runGateway;
const sessions = async () => await import("./commands/sessions.ts");
const deliveries = async () => await import("./commands/deliveries.ts");
const invoke = async () => await import("./commands/invoke.ts");

function portNumber(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new CommanderError(EXIT.usage, "usage", `--port must be a number from 0 to 65535, got "${text}"`);
}

function amount(name: string, least: number) {
  return (text: string): number => {
    const value = Number(text);
    if (text.trim() !== "" && Number.isFinite(value) && value >= least) return value;
    throw new CommanderError(
      EXIT.usage,
      "usage",
      `${name} must be a number of at least ${least}, got "${text}"`,
    );
  };
}

/** Hangs the session commands below `sessions`. */
function addSessions(parent: Command, on: (command: Command, load: Load) => void): void {
  const group = parent.command("sessions").description("what sessions there are, and what was said in them");
  const list = group.command("list", { isDefault: true }).description("sessions, newest first");
  list
    .option("--limit <n>", "most rows", amount("--limit", 1), 50)
    .option("--agent <id>", "only this agent's");
  list.option("--search <text>", "part of a label, name or key").option("--archived", "archived ones too");
  on(list, async () => (await sessions()).listSessions);
  const tree = group.command("tree").argument("[key]", "only what hangs below this session");
  tree.description("who spawned whom").option("--archived", "archived ones too");
  on(tree, async () => (await import("./commands/sessions-tree.ts")).showTree);
  const history = group.command("history").argument("<key>").description("the last messages of a session");
  history.option("--limit <n>", "most messages", amount("--limit", 1), 50);
  history.option("--before <id>", "only what was said before this message");
  on(history, async () => (await sessions()).showHistory);
  on(
    group.command("show").argument("<key>").description("one session's settings, state and usage"),
    async () => (await sessions()).showSession,
  );
  on(
    group.command("reset").argument("<key>").description("begin a new transcript; settings are kept"),
    async () => (await sessions()).resetSession,
  );
}

function addDeliveries(parent: Command, on: (command: Command, load: Load) => void): void {
  const group = parent.command("deliveries").description("the outbox: what left, what waits, what failed");
  const list = group.command("list", { isDefault: true }).description("deliveries, newest first");
  list.addOption(new Option("--state <state>").choices(["pending", "sent", "failed", "skipped"]));
  list.option("--limit <n>", "most rows", amount("--limit", 1), 50);
  on(list, async () => (await deliveries()).listDeliveries);
  on(
    group.command("retry").argument("<id>").description("try a failed delivery again"),
    async () => (await deliveries()).retryDelivery,
  );
  on(
    group.command("dismiss").argument("<id>").description("give a delivery up"),
    async () => (await deliveries()).dismissDelivery,
  );
}

/** The options that say what a job is; `add` has them, and `update`. */
function addJobOptions(command: Command): void {
  command.option("--cron <expr>", 'minute, hour, day of month, month, day of week, like "30 7 * * 1-5"');
  command.option("--tz <zone>", "of --cron, like Europe/Berlin (default: the gateway's)");
  command.option("--every <duration>", "30s, 15m, 2h, 1d");
  command.option("--at <date>", "once, like 2027-03-01T09:00 (this machine's clock) or 2027-03-01T09:00Z");
  command.option("--in <duration>", "once, so long from now");
  command.option("--name <name>", "what people call it");
  command.option("--deliver <session>", "the session in which replies are told, like main");
  command.option("--channel <channel>", "of --deliver (default: webchat)");
  command.option("--model <model>", "<provider>/<model> instead of the agent's");
  command.option("--thinking <level>", "instead of the agent's");
  command.option("--timeout <seconds>", "end a run after this long; 0: never", amount("--timeout", 0));
  command.addOption(
    new Option("--missed <policy>", "of dates that pass while no gateway is there").choices(["once", "skip"]),
  );
}

/** Hangs scheduled jobs below `cron`. */
function addCron(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/cron.ts");
  const group = parent.command("cron").description("scheduled jobs: messages to agents at set times");
  const list = group.command("list", { isDefault: true }).description("jobs, their next and last turns");
  list.option("--limit <n>", "most rows", amount("--limit", 1), 100);
  on(list, async () => (await commands()).listJobs);
  const add = group.command("add").argument("<message>", "what the agent is told").description("a new job");
  addJobOptions(add);
  add.option("--agent <id>", "whose job (default: the default agent's)").option("--disabled", "not yet");
  on(add, async () => (await commands()).addJob);
  const update = group.command("update").argument("<id>").description("change a job; the rest stays");
  addJobOptions(update);
  update.option("--message <text>", "what the agent is told").option("--no-deliver", "tell replies nowhere");
  update.option("--enable", "go on").addOption(new Option("--disable", "pause").conflicts("enable"));
  on(update, async () => (await commands()).updateJob);
  const remove = group.command("remove").argument("<id>").description("no more turns; its session stays");
  on(remove, async () => (await commands()).removeJob);
  const run = group.command("run").argument("<id>").description("a turn now, besides its dates");
  on(run, async () => (await commands()).runJob);
  const runs = group.command("runs").argument("<id>").description("the turns that it had");
  runs.option("--limit <n>", "most rows", amount("--limit", 1), 50);
  on(runs, async () => (await commands()).showRuns);
}

/** Hangs devices elsewhere below `node`. */
function addNodes(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/node.ts");
  const group = parent
    .command("node")
    .description("devices elsewhere that agents may use, and this one as such");
  const run = group.command("run").description("let a gateway's agents use this machine, within this list");
  run.option("--name <name>", "what people call it (default: the machine's name)");
  run.option(
    "--allow-exec <pattern...>",
    'programs that may be run, like "git status" "df *" (default: none)',
    [],
  );
  run.option("--cwd <folder>", "where programs run, there and below (default: your home folder)");
  run.option("--key <file>", "the key that it is known by (default: ~/.parley/node.json)");
  on(run, async () => (await commands()).runNode);
  const list = group.command("list", { isDefault: true }).description("paired nodes, and which are there");
  on(list, async () => (await commands()).listNodes);
  const pending = group.command("pending").description("devices that ask to be paired");
  on(pending, async () => (await commands()).listPending);
  const approve = group.command("approve").argument("<code>").description("let a device in, by its code");
  approve
    .option("--name <name>", "what people call it")
    .option("--agent <id>", "whose sessions its runs are");
  on(approve, async () => (await commands()).approveNode);
  const reject = group.command("reject").argument("<code>").description("turn a device away");
  on(reject, async () => (await commands()).rejectNode);
  const describe = group.command("describe").argument("<node>").description("what one is and offers");
  on(describe, async () => (await commands()).describeNode);
  const invoke = group
    .command("invoke")
    .argument("<node>")
    .argument("<command>")
    .argument("[json]", "its params");
  invoke.description("ask a node for a command").option("--key <key>", "the same key is done once");
  invoke.option("--timeout <seconds>", "how long to wait", amount("--timeout", 1), 30);
  on(invoke, async () => (await commands()).invokeNode);
  const rename = group.command("rename").argument("<node>").argument("<name>").description("call it so");
  on(rename, async () => (await commands()).renameNode);
  const remove = group.command("remove").argument("<node>").description("pair it no more");
  on(remove, async () => (await commands()).removeNode);
}

/** The commands that talk to a running gateway. */
function addTalking(parent: Command, on: (command: Command, load: Load) => void): void {
  const chat = parent.command("chat").description("talk to an agent in the terminal");
  chat.addOption(
    new Option("--session <key>", "which session (default: the default agent's main one)").conflicts("new"),
  );
  chat.option("--new", "a new session");
  on(chat, async () => (await import("./commands/chat.ts")).runChat);
  const send = parent.command("send").argument("<message>").description("say one thing to a session");
  send.requiredOption("--session <key>", "to which session");
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
  addNodes(parent, on);
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

/** Hangs what agents ask for below `permissions`. */
function addPermissions(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/permissions.ts");
  const group = parent.command("permissions").description("what agents ask for, and the answer");
  const list = group.command("list", { isDefault: true }).description("what is asked at this moment");
  on(list, async () => (await commands()).listPermissions);
  const allow = group.command("allow").argument("<id>").description("let the agent do it, this once");
  on(allow, async () => (await commands()).allowPermission);
  const deny = group.command("deny").argument("<id>").description("do not let the agent do it");
  on(deny, async () => (await commands()).denyPermission);
}

/** Hangs what is done with a whole store below `store`. */
function addStore(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/store.ts");
  const group = parent
    .command("store")
    .description("where the state is; a backup of it; its way to PostgreSQL");
  const show = group
    .command("show", { isDefault: true })
    .description("where it is, what it holds, who uses it");
  on(show, async () => (await commands()).showStore);
  const migrate = group
    .command("migrate")
    .description("copy the embedded store into an empty PostgreSQL one");
  migrate.requiredOption("--to <url>", "postgresql://user:password@host:5432/database, with ?schema=name");
  on(migrate, async () => (await commands()).migrateStore);
  const backup = group.command("backup").argument("<file>").description("write everything to a new file");
  on(backup, async () => (await commands()).backupStore);
  const restore = group
    .command("restore")
    .argument("<file>")
    .description("fill an empty store from a backup");
  on(restore, async () => (await commands()).restoreStore);
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
  const moving = parent.command("import").argument("<dir>");
  moving.description("take over an OpenClaw or Clawdbot state directory, which stays as it is");
  moving.option("--dry-run", "say what would be done, and do nothing");
  on(moving, async () => (await import("./commands/import.ts")).runImport);
  const config = parent.command("config").description("the configuration file");
  on(
    config.command("check").description("say what is wrong with it, or what it amounts to"),
    async () => (await import("./commands/config-check.ts")).checkConfig,
  );
  on(
    parent.command("doctor").description("find out what does not work, and how to mend it"),
    async () => (await import("./commands/doctor.ts")).runDoctor,
  );
  on(
    parent
      .command("demo")
      .description("three agents, one after another of the main ideas, in a temporary directory"),
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

/** Without a command the gateway starts; a word that is no command is a mistake. */
function onlyKnown(program: Command, action: Action): Action {
  return async (cli, args, options) => {
    const [word] = args;
    if (word === undefined) return action(cli, args, options);
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
function buildProgram(
  parts: CliParts,
  finish: (code: number) => void,
  tell: (text: string) => void,
): Command {
  const program = new Command("parley");
  program.description("A small gateway in which AI agents hold sessions and work across them.");
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
      const action = await load();
      finish(await action(cli, command.args, command.opts() as never));
    });
  };
  addTalking(program, on);
  addHouse(program, on);
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
    const message = redactSecrets(isHelp ? told.trim() : error.message.replace(/^error: /, ""));
    const hint = isHelp ? {} : { hint: 'See "parley --help".' };
    return cli.fail({ code: "usage", error: message, ...hint }, EXIT.usage);
  } finally {
    hold.port1.close();
  }
}
