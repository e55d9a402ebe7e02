// Owns the commands that have commands below them: which those are, and their options.

import { Argument, type Command, CommanderError, Option } from "commander";
import { type Cli, EXIT } from "./cli.ts";
import { SHELLS } from "./shells.ts";

/** Each command knows the type of its own options; what they are made of is declared below, next to it. */
export type Action = (cli: Cli, args: readonly string[], options: never) => Promise<number>;
export type Load = () => Promise<Action>;

const sessions = async () => await import("./commands/sessions.ts");
const deliveries = async () => await import("./commands/deliveries.ts");

/** Reads an option that is a number of at least `least`. */
export function amount(name: string, least: number) {
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
export function addSessions(parent: Command, on: (command: Command, load: Load) => void): void {
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
  history.option(
    "--earlier [which]",
    "list the conversations before its resets, or show one: number or session id",
  );
  on(history, async () => (await sessions()).showHistory);
  const exported = group
    .command("export")
    .argument("<key>")
    .description("a whole conversation, one message a line");
  exported.option("--earlier <which>", "one from before a reset: its number or session id");
  exported.addOption(
    new Option("--format <format>", "how it is written").choices(["jsonl", "markdown"]).default("jsonl"),
  );
  on(exported, async () => (await import("./commands/sessions-export.ts")).exportSession);
  on(
    group.command("show").argument("<key>").description("one session's settings, state and usage"),
    async () => (await sessions()).showSession,
  );
  on(
    group.command("reset").argument("<key>").description("begin a new transcript; settings are kept"),
    async () => (await sessions()).resetSession,
  );
}

/** Hangs the outbox below `deliveries`. */
export function addDeliveries(parent: Command, on: (command: Command, load: Load) => void): void {
  const group = parent.command("deliveries").description("the outbox: what left, what waits, what failed");
  const list = group.command("list", { isDefault: true }).description("deliveries, newest first");
  const state = new Option("--state <state>", "only those that stand so");
  list.addOption(state.choices(["pending", "sent", "failed", "skipped"]));
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

/** The options that say which place on a channel is meant. */
export function addPlace(command: Command, channel: string): void {
  command.option("--channel <channel>", channel);
  command.option("--account <id>", "of --channel: which account (default: the first)");
  command.option("--thread <id>", "of --channel: the thread or topic");
}

/** The options that say what a job is; `add` has them, and `update`. */
function addJobOptions(command: Command): void {
  command.option("--cron <expr>", 'minute, hour, day of month, month, day of week, like "30 7 * * 1-5"');
  command.option("--tz <zone>", "of --cron, like Europe/Berlin (default: the gateway's)");
  command.option("--every <duration>", "30s, 15m, 2h, 1d");
  command.option("--at <date>", "once, like 2027-03-01T09:00 (this machine's clock) or 2027-03-01T09:00Z");
  command.option("--in <duration>", "once, so long from now");
  command.option("--name <name>", "what people call it");
  command.option("--deliver <place>", "where replies are told: a session like main, or a chat of --channel");
  addPlace(command, "of --deliver: webchat, last, or a channel that is set up (default: webchat)");
  command.option("--model <model>", "<provider>/<model> instead of the agent's");
  command.option("--thinking <level>", "instead of the agent's");
  command.option("--timeout <seconds>", "end a run after this long; 0: never", amount("--timeout", 0));
  command.addOption(
    new Option("--missed <policy>", "of dates that pass while no gateway is there").choices(["once", "skip"]),
  );
}

const ID_OR_NAME = "its id, or its name";

/** Hangs scheduled jobs below `cron`. */
export function addCron(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/cron.ts");
  const group = parent.command("cron").description("scheduled jobs: messages to agents at set times");
  const list = group.command("list", { isDefault: true }).description("jobs, their next and last turns");
  list.option("--limit <n>", "most rows", amount("--limit", 1), 100);
  on(list, async () => (await commands()).listJobs);
  const add = group.command("add").argument("<message>", "what the agent is told").description("a new job");
  addJobOptions(add);
  add.option("--agent <id>", "whose job (default: the default agent's)").option("--disabled", "not yet");
  on(add, async () => (await commands()).addJob);
  const update = group
    .command("update")
    .argument("<job>", ID_OR_NAME)
    .description("change a job; the rest stays");
  addJobOptions(update);
  update.option("--message <text>", "what the agent is told").option("--no-deliver", "tell replies nowhere");
  update.option("--enable", "go on").addOption(new Option("--disable", "pause").conflicts("enable"));
  on(update, async () => (await commands()).updateJob);
  const remove = group
    .command("remove")
    .argument("<job>", ID_OR_NAME)
    .description("no more turns; its session stays");
  on(remove, async () => (await commands()).removeJob);
  const run = group.command("run").argument("<job>", ID_OR_NAME).description("a turn now, besides its dates");
  on(run, async () => (await commands()).runJob);
  const runs = group.command("runs").argument("<job>", ID_OR_NAME).description("the turns that it had");
  runs.option("--limit <n>", "most rows", amount("--limit", 1), 50);
  on(runs, async () => (await commands()).showRuns);
}

/** Hangs what is done with channels below `channels`. */
export function addChannels(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/channels.ts");
  const group = parent
    .command("channels")
    .description("where people talk: accounts, and who may write to them");
  const list = group.command("list", { isDefault: true }).description("how each way out stands");
  on(list, async () => (await commands()).listChannels);
  const add = group.command("add").argument("[channel]", "telegram, discord, whatsapp, signal or imessage");
  add.description("set an account up, step by step");
  add.option("--account <name>", "a further account of the channel, by this name");
  add.option("--set <key=value...>", "instead of being asked; ${NAME} is read from the environment");
  add.option("--no-test", "write it without asking the platform");
  on(add, async () => (await import("./channels/add.ts")).addChannel);
  const test = group.command("test").argument("[account]", "like telegram or telegram:work (default: all)");
  on(test.description("ask the platform who we are there"), async () => (await commands()).testChannels);
  const pair = group.command("pair").description("who wants to write to an agent, and who may");
  const peers = pair.command("list", { isDefault: true }).description("codes that wait, and who was let in");
  on(peers, async () => (await commands()).listPeers);
  const approve = pair.command("approve").argument("<code>").description("let whoever got this code in");
  on(approve, async () => (await commands()).approvePeer);
  const reject = pair.command("reject").argument("<code>").description("turn whoever got this code away");
  on(reject, async () => (await commands()).rejectPeer);
  const remove = pair.command("remove").argument("<peer>", "like telegram:123456");
  remove.description("let somebody in no more").option("--account <name>", "at this account only");
  on(remove, async () => (await commands()).removePeer);
  const bindings = group.command("bindings").description("threads and chats that are bound to a session");
  on(bindings, async () => (await commands()).listBindings);
  const unbind = group.command("unbind").argument("<key>").description("end the bindings of a session");
  on(unbind, async () => (await commands()).unbindSession);
}

/** Hangs devices elsewhere below `node`. */
export function addNodes(parent: Command, on: (command: Command, load: Load) => void): void {
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

/** Hangs the devices that have a device token below `devices`. */
export function addDevices(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/devices.ts");
  const group = parent.command("devices").description("manage the tokens of devices");
  const list = group.command("list", { isDefault: true }).description("list the devices and their tokens");
  on(list, async () => (await commands()).listDevices);
  const revoke = group.command("revoke").argument("<id>", "its id, or the beginning of it");
  revoke.description("revoke a device's tokens; it then connects with the gateway's token only");
  on(revoke, async () => (await commands()).revokeDevice);
}

/** Hangs what agents ask for below `permissions`. */
export function addPermissions(parent: Command, on: (command: Command, load: Load) => void): void {
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
export function addStore(parent: Command, on: (command: Command, load: Load) => void): void {
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
  const recover = group
    .command("recover")
    .description("rebuild a damaged embedded store from what is left and from its JSONL copies");
  on(recover, async () => (await commands()).recoverStore);
}

/** Hangs what keeps a gateway running below `service`. */
export function addService(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/service.ts");
  const group = parent.command("service").description("the gateway as a service of this user");
  const install = group.command("install").description("start it with the machine, and again when it fails");
  install.option("--print", "print the service's file, and change nothing");
  install.option("--no-start", "write the file, and leave the rest to you");
  on(install, async () => (await commands()).installService);
  const remove = group.command("uninstall").description("stop it and remove its file; the state stays");
  on(remove, async () => (await commands()).uninstallService);
  const status = group.command("status", { isDefault: true }).description("whether it is there, and runs");
  on(status, async () => (await commands()).serviceStatus);
}

/** Hangs what completes words in a shell below the program, which it is made of. */
export function addCompletion(program: Command, on: (command: Command, load: Load) => void): void {
  const command = program.command("completion").addArgument(new Argument("<shell>").choices(SHELLS));
  command.description("a script by which a shell completes these commands");
  on(command, async () => (await import("./commands/completion.ts")).printCompletion(program));
}
