// Declares the groups of commands (sessions, cron, node …) and their options.

import { Argument, type Command, CommanderError, Option } from "commander";
import { SCOPES } from "../core/rules/scopes.ts";
import { PERMISSION_SCOPES } from "../core/shapes/permission.ts";
import { type Cli, EXIT } from "./cli.ts";
import { PROGRAMS } from "./join/programs.ts";
import { SHELLS } from "./shells.ts";

/** Runs a command. Each command declares the type of its own options. */
export type Action = (cli: Cli, args: readonly string[], options: never) => Promise<number>;
export type Load = () => Promise<Action>;

const sessions = async () => await import("./commands/sessions/sessions.ts");
const deliveries = async () => await import("./commands/deliveries.ts");

/** Returns a parser for an option whose value is a number of at least `least`. */
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

const SESSION = "Key, label or name of the session, or a beginning that no other session has";

/** Adds the group `sessions`. */
export function addSessions(parent: Command, on: (command: Command, load: Load) => void): void {
  const group = parent.command("sessions").description("List, read and change sessions");
  const list = group.command("list", { isDefault: true }).description("List sessions, newest first");
  list
    .option("--limit <n>", "Show at most this many rows", amount("--limit", 1), 50)
    .option("--agent <id>", "Show only this agent's sessions");
  list.option("--search <text>", "Search labels, names, keys and first words");
  list.option("--archived", "Include archived sessions");
  on(list, async () => (await sessions()).listSessions);
  const tree = group.command("tree").argument("[session]", "Start at this session");
  tree.description("Show the tree of spawned sessions").option("--archived", "Include archived sessions");
  on(tree, async () => (await import("./commands/sessions/tree.ts")).showTree);
  const one = (name: string, text: string): Command =>
    group.command(name).argument("<session>", SESSION).description(text);
  const history = one("history", "Show the last messages of a session");
  history.option("--limit <n>", "Show at most this many messages", amount("--limit", 1), 50);
  history.option("--before <id>", "Show only messages before this message id");
  history.option("--earlier <conversation>", "Show an earlier conversation, by its number or session id");
  on(history, async () => (await sessions()).showHistory);
  const earlier = one("earlier", "List the earlier conversations of a session (each reset ends one)");
  on(earlier, async () => (await import("./commands/sessions/earlier.ts")).listEarlier);
  const exported = one("export", "Print a whole conversation as JSON lines or Markdown");
  exported.option("--earlier <conversation>", "Export an earlier conversation, by its number or session id");
  exported.addOption(
    new Option("--format <format>", "Use this format").choices(["jsonl", "markdown"]).default("jsonl"),
  );
  exported.option("--output <file>", "Write to this new file instead of standard output");
  on(exported, async () => (await import("./commands/sessions/export.ts")).exportSession);
  const show = one("show", "Show the settings, state and usage of a session");
  on(show, async () => (await sessions()).showSession);
  const forked = one("fork", "Continue a conversation in a session of its own, from one of its messages");
  forked.option("--at <message id>", "Share the messages up to this one (default: the newest)");
  forked.option("--label <label>", "Set the label of the new session");
  on(forked, async () => (await import("./commands/sessions/fork.ts")).forkSession);
  addSessionChanges(one, on);
}

/** Adds the commands that change a session. `one`: adds a command about one session. */
function addSessionChanges(
  one: (name: string, text: string) => Command,
  on: (command: Command, load: Load) => void,
): void {
  const changes = async () => await import("./commands/sessions/changes.ts");
  const stop = one("stop", "Stop the work of a session and of its sub-agents");
  on(stop, async () => (await changes()).stopSession);
  const rename = one("rename", "Set the label of a session").argument("[label]", "New label");
  rename.option("--clear", "Remove the label");
  on(rename, async () => (await changes()).renameSession);
  const told = one("instructions", "Show a session's instructions for its model, or change them");
  told.argument("[text]", "New instructions; - reads them from standard input");
  told.option("--clear", "Remove the instructions");
  on(told, async () => (await changes()).sessionInstructions);
  const archive = one("archive", "Hide an idle session from agents and lists, and make it read-only");
  on(archive, async () => (await changes()).archiveSession);
  on(one("restore", "Restore an archived session"), async () => (await changes()).restoreSession);
  const reset = one("reset", "Start a new transcript and keep the settings");
  on(reset, async () => (await changes()).resetSession);
  const remove = one("delete", "Stop a session's work, and delete the session with its transcript");
  remove.option("--keep-transcript", "Keep the messages in the store");
  remove.option("--yes", "Delete without asking");
  on(remove, async () => (await changes()).deleteSession);
}

/** Adds the group `agents`. */
export function addAgents(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/agents.ts");
  const group = parent.command("agents").description("Manage the configured agents");
  on(
    group.command("list", { isDefault: true }).description("List the configured agents"),
    async () => (await commands()).listAgents,
  );
  on(
    group
      .command("show")
      .argument("<agent>", "Id of the agent")
      .description("Show what the model of an agent is told, part by part with sizes"),
    async () => (await commands()).showAgent,
  );
  const add = group.command("add").argument("<id>", "Id of the agent: a-z, 0-9, _ and -");
  add.description("Add an agent to the configuration file");
  add.option("--name <text>", "Name for people (default: the id)");
  add.option("--model <model>", "Model as <provider>/<model> (default: that of agents.defaults)");
  add.option("--workspace <folder>", "Folder of the agent (default: its own folder)");
  on(add, async () => (await commands()).addAgent);
  const remove = group.command("remove").argument("<agent>", "Id of the agent");
  remove.description("Remove an agent from the configuration file, and keep its sessions and files");
  remove.option("--yes", "Remove without asking");
  on(remove, async () => (await commands()).removeAgent);
  const memory = group.command("memory").argument("<agent>", "Id of the agent");
  memory.description("Show the memory of an agent, or replace it");
  memory.option("--from <file>", "Replace the memory with the text of this file");
  on(memory, async () => (await commands()).agentMemory);
}

/** Adds the group `deliveries`. */
export function addDeliveries(parent: Command, on: (command: Command, load: Load) => void): void {
  const group = parent
    .command("deliveries")
    .description("Manage the outbox: pending, sent and failed deliveries");
  const list = group.command("list", { isDefault: true }).description("List deliveries, newest first");
  const state = new Option("--state <state>", "Show only deliveries in this state");
  list.addOption(state.choices(["pending", "sent", "failed", "skipped"]));
  list.option("--limit <n>", "Show at most this many rows", amount("--limit", 1), 50);
  on(list, async () => (await deliveries()).listDeliveries);
  on(
    group.command("retry").argument("<id>").description("Retry a failed delivery"),
    async () => (await deliveries()).retryDelivery,
  );
  on(
    group.command("dismiss").argument("<id>").description("Dismiss a delivery, so that it is not retried"),
    async () => (await deliveries()).dismissDelivery,
  );
}

/** Adds the options of a route: channel, account and thread. `channel`: the help text of --channel. */
export function addRouteOptions(command: Command, channel: string): void {
  command.option("--channel <channel>", channel);
  command.option("--account <id>", "Use this account of --channel (default: the first)");
  command.option("--thread <id>", "Use this thread or topic of --channel");
}

/** Adds the options that `cron add` and `cron update` share. */
function addJobOptions(command: Command): void {
  command.option(
    "--cron <expr>",
    'Run at these times: minute, hour, day of month, month, day of week, like "30 7 * * 1-5"',
  );
  command.option("--tz <zone>", "Use this time zone for --cron, like Europe/Berlin (default: the gateway's)");
  command.option("--every <duration>", "Run at this interval, like 30s, 15m, 2h or 1d");
  command.option(
    "--at <date>",
    "Run once at this time, like 2027-03-01T09:00 (this machine's time zone) or 2027-03-01T09:00Z",
  );
  command.option("--in <duration>", "Run once after this duration");
  command.option("--name <name>", "Set the name of the job");
  command.option(
    "--deliver <place>",
    "Deliver replies to a session, such as main, or to a chat in --channel",
  );
  addRouteOptions(command, "Deliver over this channel: webchat, last or a configured one (default: webchat)");
  command.option("--model <model>", "Use this <provider>/<model> instead of the agent's");
  command.option("--thinking <level>", "Use this thinking level instead of the agent's");
  command.option("--timeout <seconds>", "Stop a run after this duration (0: never)", amount("--timeout", 0));
  command.addOption(
    new Option(
      "--missed <policy>",
      "After downtime, run the job once for all missed dates, or skip them",
    ).choices(["once", "skip"]),
  );
  command.addOption(
    new Option(
      "--conversation <policy>",
      "Begin a new conversation in the job's session at each run, or keep one for all (default for a new " +
        "job: fresh with --deliver and without --session)",
    ).choices(["keep", "fresh"]),
  );
}

const ID_OR_NAME = "Id or name of the job";

/** Adds the group `cron`. */
export function addCron(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/cron.ts");
  const group = parent.command("cron").description("Manage scheduled jobs: messages to agents at set times");
  const list = group
    .command("list", { isDefault: true })
    .description("List jobs, with the last and the next run of each");
  list.option("--limit <n>", "Show at most this many rows", amount("--limit", 1), 100);
  on(list, async () => (await commands()).listJobs);
  const add = group.command("add").argument("<message>", "Message to the agent").description("Add a job");
  addJobOptions(add);
  add.option("--agent <id>", "Run the job as this agent (default: the default agent)");
  add.option(
    "--session <session>",
    "Run the job in this session, such as main; /reset begins a new conversation there (default: its own)",
  );
  add.option("--disabled", "Add the job disabled");
  on(add, async () => (await commands()).addJob);
  const update = group
    .command("update")
    .argument("<job>", ID_OR_NAME)
    .description("Change the given settings of a job");
  addJobOptions(update);
  update.option("--message <text>", "Set the message to the agent");
  update.option("--no-deliver", "Do not deliver replies");
  update.option("--enable", "Enable the job");
  update.addOption(new Option("--disable", "Disable the job").conflicts("enable"));
  on(update, async () => (await commands()).updateJob);
  const remove = group
    .command("remove")
    .argument("<job>", ID_OR_NAME)
    .description("Remove a job and keep its session");
  on(remove, async () => (await commands()).removeJob);
  const run = group
    .command("run")
    .argument("<job>", ID_OR_NAME)
    .description("Run a job now, in addition to its schedule");
  on(run, async () => (await commands()).runJob);
  const runs = group.command("runs").argument("<job>", ID_OR_NAME).description("List the past runs of a job");
  runs.option("--limit <n>", "Show at most this many rows", amount("--limit", 1), 50);
  on(runs, async () => (await commands()).showRuns);
}

/** Adds the group `channels`. */
export function addChannels(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/channels.ts");
  const group = parent.command("channels").description("Manage channel accounts and who may write to them");
  const list = group.command("list", { isDefault: true }).description("List the channels and their status");
  on(list, async () => (await commands()).listChannels);
  const add = group.command("add").argument("[channel]", "telegram, discord, whatsapp, signal or imessage");
  add.description("Set up an account, step by step");
  add.option("--account <name>", "Add another account of the channel, with this name");
  add.option(
    "--set <key=value...>",
    "Give these values instead of answering questions; ${NAME} is read from the environment",
  );
  add.option("--no-test", "Do not test the account at the platform first");
  on(add, async () => (await import("./channels/add.ts")).addChannel);
  const test = group
    .command("test")
    .argument("[account]", "Account, like telegram or telegram:work (default: all)");
  on(test.description("Test whether the accounts work"), async () => (await commands()).testChannels);
  const pair = group.command("pair").description("Manage who may write to the agents");
  const peers = pair
    .command("list", { isDefault: true })
    .description("List pending codes and approved people");
  on(peers, async () => (await commands()).listPeers);
  const approve = pair.command("approve").argument("<code>").description("Approve the person with this code");
  on(approve, async () => (await commands()).approvePeer);
  const reject = pair.command("reject").argument("<code>").description("Reject the person with this code");
  on(reject, async () => (await commands()).rejectPeer);
  const remove = pair.command("remove").argument("<peer>", "Person, like telegram:123456");
  remove
    .description("Revoke someone's access")
    .option("--account <name>", "Revoke the access at this account only");
  on(remove, async () => (await commands()).removePeer);
  const bindings = group
    .command("bindings")
    .description("List the threads and chats that are bound to a session");
  on(bindings, async () => (await commands()).listBindings);
  const unbind = group
    .command("unbind")
    .argument("<session>", SESSION)
    .description("Remove the bindings of a session");
  on(unbind, async () => (await commands()).unbindSession);
}

const NODE = "Name or id of the node";
const PEER = "Name of the peer";

/** Adds the group `node`. */
export function addNodes(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/node.ts");
  const group = parent
    .command("node")
    .description("Manage nodes (devices that agents may use), or run this machine as a node");
  const run = group.command("run").description("Run this machine as a node of a gateway");
  run.option("--name <name>", "Set the name of the node (default: the host name)");
  run.option("--allow-exec <pattern...>", 'Allow these programs, like "git status" "df *" (default: none)');
  run.option("--cwd <folder>", "Run programs in this folder or below it (default: your home folder)");
  run.option("--key <file>", "Use the key in this file (default: ~/.parley/node.json)");
  on(run, async () => (await commands()).runNode);
  const list = group
    .command("list", { isDefault: true })
    .description("List paired nodes and whether they are connected");
  on(list, async () => (await commands()).listNodes);
  const pending = group.command("pending").description("List pending pairing requests");
  on(pending, async () => (await commands()).listPending);
  const approve = group
    .command("approve")
    .argument("<code>")
    .description("Approve a pairing request, by its code");
  approve
    .option("--name <name>", "Set the name of the node")
    .option("--agent <id>", "Handle events of the node as this agent (default: the default agent)");
  on(approve, async () => (await commands()).approveNode);
  const reject = group.command("reject").argument("<code>").description("Reject a pairing request");
  on(reject, async () => (await commands()).rejectNode);
  const describe = group
    .command("describe")
    .argument("<node>", NODE)
    .description("Describe a node and its commands");
  on(describe, async () => (await commands()).describeNode);
  const invoke = group
    .command("invoke")
    .argument("<node>", NODE)
    .argument("<command>", "Command that the node offers")
    .argument("[json]", "Parameters as JSON");
  invoke.description("Run a command on a node");
  invoke.option("--key <key>", "Set the idempotency key: the node runs a command once per key");
  invoke.option("--timeout <seconds>", "Wait at most this long", amount("--timeout", 1), 30);
  on(invoke, async () => (await commands()).invokeNode);
  const rename = group.command("rename").argument("<node>", NODE).argument("<name>", "New name");
  rename.description("Rename a node");
  on(rename, async () => (await commands()).renameNode);
  const remove = group.command("remove").argument("<node>", NODE).description("Unpair a node");
  on(remove, async () => (await commands()).removeNode);
}

/** Adds the group `peer`. */
export function addPeers(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/rights/peers.ts");
  const group = parent
    .command("peer")
    .description("Manage peers (other gateways whose agents talk with yours)");
  const list = group.command("list", { isDefault: true }).description("List peers and their agents");
  on(list, async () => (await commands()).listPeers);
  const invite = group.command("invite").argument("<name>", "Name for the other gateway");
  invite.description("Make a pairing code for another gateway");
  invite.option("--expose <agent...>", "Let the peer write to these agents (default: none)");
  invite.option("--address <url>", "Address of the other gateway, to write to its agents");
  on(invite, async () => (await commands()).invitePeer);
  const add = group.command("add").argument("<url>", "Address of the other gateway");
  add.description("Pair with a gateway that made a pairing code");
  add.option("--name <name>", "Set the name of the other gateway here");
  add.option("--code <code>", "Use this pairing code");
  add.option("--expose <agent...>", "Let the peer write to these agents (default: none)");
  on(add, async () => (await commands()).addPeer);
  const expose = group.command("expose").argument("<peer>", PEER).argument("[agents...]", "Agents");
  expose.description("Let a peer write to these agents, and to no others");
  expose.option("--address <url>", "Set the address of the peer");
  on(expose, async () => (await commands()).exposeToPeer);
  const remove = group.command("remove").argument("<peer>", PEER).description("Remove a peer");
  on(remove, async () => (await commands()).removePeer);
}

/** Adds the group `devices`, which manages device tokens. */
export function addDevices(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/rights/devices.ts");
  const group = parent.command("devices").description("Manage device tokens");
  const list = group.command("list", { isDefault: true }).description("List devices and their tokens");
  on(list, async () => (await commands()).listDevices);
  const revoke = group.command("revoke").argument("<id>", "Id of the device, or its beginning");
  revoke.description("Revoke the tokens of a device; it can then connect only with the gateway's token");
  on(revoke, async () => (await commands()).revokeDevice);
}

/** Adds the group `tokens`, which manages access tokens. */
export function addTokens(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/rights/tokens.ts");
  const group = parent.command("tokens").description("Manage access tokens for other programs and people");
  const list = group.command("list", { isDefault: true }).description("List access tokens and their rights");
  on(list, async () => (await commands()).listTokens);
  const create = group.command("create").argument("<name>", "Person or program that uses the token");
  create.description("Create an access token and print it; it cannot be printed again");
  create.addOption(
    new Option("--scope <scope>", "Give this scope, which includes the smaller ones")
      .choices(SCOPES)
      .default("operator.read"),
  );
  create.option("--sessions <pattern...>", 'Cover only these sessions, like "agent:research:*"');
  create.option("--days <n>", "Expire after this many days", amount("--days", 1), 90);
  on(create, async () => (await commands()).createToken);
  const narrow = group.command("narrow").argument("<token>", "Id, its beginning, or name of the token");
  narrow.description("Take rights from an access token; they cannot be given back");
  narrow.addOption(new Option("--scope <scope>", "Keep only this scope").choices(SCOPES));
  narrow.option("--sessions <pattern...>", "Keep only these sessions");
  on(narrow, async () => (await commands()).narrowToken);
  const revoke = group.command("revoke").argument("<token>", "Id, its beginning, or name of the token");
  revoke.description("Revoke an access token, and close the connections that it opened");
  on(revoke, async () => (await commands()).revokeToken);
}

/** Adds `inbox` (the list for a person, and the hook of a joined program) and the group `runs`. */
export function addAttention(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/sessions/attention.ts");
  const inbox = parent
    .command("inbox")
    .description("List sessions by state: needs you, running, waiting, failed, done");
  inbox.option("--limit <n>", "Print at most this many items of each group", amount("--limit", 1), 20);
  const hook = new Option("--hook <program>", "Run as the hook of this joined program: print new messages");
  inbox.addOption(hook.choices(PROGRAMS));
  inbox.option("--joined <handle>", "Name under which the program of the hook or the window has joined");
  inbox.option(
    "--window <n>",
    "Wake this window of a joined program when a message waits",
    amount("--window", 1),
  );
  on(inbox, async () => (await commands()).showInbox);
  const group = parent.command("runs").description("Retry or dismiss the last run of a session");
  const retry = group.command("retry").argument("<run>", "Id that npx parley-gateway inbox prints");
  on(retry.description("Send the message of a failed run again"), async () => (await commands()).retryRun);
  const dismiss = group.command("dismiss").argument("<run>", "Id that npx parley-gateway inbox prints");
  on(dismiss.description("Dismiss a failed run or a question"), async () => (await commands()).dismissRun);
}

/** Adds the group `permissions`. */
export function addPermissions(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/rights/permissions.ts");
  const group = parent.command("permissions").description("Answer permission requests of agents");
  const list = group.command("list", { isDefault: true }).description("List pending permission requests");
  on(list, async () => (await commands()).listPermissions);
  const allow = group.command("allow").argument("<id>").description("Allow a request");
  const scope = new Option("--scope <scope>", "Allow once, in this session, or always for this agent");
  allow.addOption(scope.choices(PERMISSION_SCOPES).default("once"));
  allow.option("--yes", "Allow for longer than once without asking");
  on(allow, async () => (await commands()).allowPermission);
  const deny = group.command("deny").argument("<id>").description("Deny a request");
  on(deny, async () => (await commands()).denyPermission);
  const rules = group.command("rules").description("List the commands that are allowed for longer");
  on(rules, async () => (await commands()).listPermissionRules);
  const forget = group
    .command("forget")
    .argument("<id>", "Id that npx parley-gateway permissions rules prints");
  on(forget.description("Ask about an allowed command again"), async () => (await commands()).forgetRule);
}

/** Adds the group `config`. */
export function addConfig(parent: Command, on: (command: Command, load: Load) => void): void {
  const values = async () => await import("./commands/config/values.ts");
  const group = parent.command("config").description("Check, read and change the configuration file");
  on(
    group.command("check").description("Check the configuration file and summarize it"),
    async () => (await import("./commands/config/check.ts")).checkConfig,
  );
  const get = group
    .command("get")
    .argument("[path]", "Setting, like session.queueMax (default: the whole file)");
  on(get.description("Print a setting of the file, without secrets"), async () => (await values()).getConfig);
  const set = group.command("set").argument("<path>", "Setting, like agents.list.main.model");
  set
    .argument("[value]", "JSON, or text. - reads standard input")
    .description("Change a setting of the file, and keep its comments");
  set.option("--dry-run", "Show the change and its problems, and change nothing");
  set.option("--unset", "Remove the setting, so that it has its default");
  on(set, async () => (await values()).setConfig);
  const edit = group.command("edit").description("Edit the configuration file in $VISUAL, $EDITOR or vi");
  edit.option("--yes", "Save without asking");
  on(edit, async () => (await import("./commands/config/edit.ts")).editConfig);
  const schema = group
    .command("schema")
    .description("Print the JSON Schema of the configuration file, for completion in an editor");
  schema.option("--write <file>", "Write the schema to this file instead of standard output");
  on(schema, async () => (await import("./commands/config/schema.ts")).printSchema);
}

/** Adds the group `store`. */
export function addStore(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/gateway/store.ts");
  const group = parent
    .command("store")
    .description("Inspect, back up, restore, recover or migrate the store");
  const show = group
    .command("show", { isDefault: true })
    .description("Show the location and contents of the store, and the gateways that use it");
  on(show, async () => (await commands()).showStore);
  const migrate = group
    .command("migrate")
    .description("Migrate the embedded store to an empty PostgreSQL database");
  migrate.requiredOption(
    "--to <url>",
    "Copy to this database: postgresql://user:password@host:5432/database, optionally with ?schema=name",
  );
  on(migrate, async () => (await commands()).migrateStore);
  const backup = group.command("backup").argument("<file>").description("Back up the store to a new file");
  on(backup, async () => (await commands()).backupStore);
  const restore = group
    .command("restore")
    .argument("<file>")
    .description("Restore a backup into an empty store");
  restore.option(
    "--accept <kinds>",
    "Also restore rights: all, or some of rules,nodes,peers,people,jobs,memory,tokens,keys (default: ask)",
  );
  on(restore, async () => (await commands()).restoreStore);
  const recover = group
    .command("recover")
    .description("Rebuild a damaged embedded store from its readable rows and its newest backup");
  on(recover, async () => (await commands()).recoverStore);
}

/** Adds the group `service`. */
export function addService(parent: Command, on: (command: Command, load: Load) => void): void {
  const commands = async () => await import("./commands/gateway/service.ts");
  const group = parent.command("service").description("Run the gateway as a service of this user");
  const install = group
    .command("install")
    .description("Install the service, so that it starts with the machine and restarts after a failure");
  install.option("--print", "Print the service's file and change nothing");
  install.option("--no-start", "Write the service's file and print the commands that start the service");
  on(install, async () => (await commands()).installService);
  const remove = group
    .command("uninstall")
    .description("Stop the service and remove its file, but keep the state");
  on(remove, async () => (await commands()).uninstallService);
  const status = group
    .command("status", { isDefault: true })
    .description("Show whether the service is installed and running");
  on(status, async () => (await commands()).serviceStatus);
}

/** Adds the command `completion`, which prints a script that completes the commands of `program`. */
export function addCompletion(program: Command, on: (command: Command, load: Load) => void): void {
  const command = program.command("completion").addArgument(new Argument("<shell>").choices(SHELLS));
  command.description("Print a completion script for a shell");
  on(command, async () => (await import("./commands/completion.ts")).printCompletion(program));
}

const everyValue = (value: string, before: readonly string[] = []): string[] => [...before, value];

/** Adds the commands that run recorded chains again and compare them. */
export function addReplay(parent: Command, on: (command: Command, load: Load) => void): void {
  const replay = parent.command("replay").argument("[chain]", "Id of the chain (default: the newest)");
  replay.description("Run a chain again from its record, and name the first difference");
  replay.addOption(new Option("--file <record>", "Use the record in this file").conflicts("save"));
  replay.option("--save <file>", "Also write the record to this new file");
  replay.option("--model <model>", "Really call this model instead of the recorded ones");
  replay.option("--agent <agent.model=model>", "Really call this model for one agent", everyValue);
  replay.option("--from <step>", "Really call models from this step on (number or message id)");
  replay.option(
    "--change <file>",
    "Change instructions, settings or the first message as this JSON file says",
  );
  replay.option("--live <tools>", "Really run these tools (names with commas)");
  replay.option("--repeat <n>", "Replay this many times", amount("--repeat", 1));
  replay.option("--out <file>", "Write the record of the replay to this new file");
  on(replay, async () => (await import("./commands/sessions/replay.ts")).replayChain);
  const diff = parent.command("diff").argument("<a>", "Id of a chain, or file of its record");
  diff.argument("<b>", "The chain to compare it with").description("Compare two chains step by step");
  on(diff, async () => (await import("./commands/sessions/diff.ts")).diffRecords);
  const group = parent.command("eval").description("Check recorded chains with other models or instructions");
  const evaluate = group
    .command("run", { isDefault: true })
    .argument("<file>", "File with cases and variants");
  evaluate.description("Replay all cases with all variants, and check the expectations");
  evaluate.option(
    "--change <file>",
    "Add a variant with this change (see npx parley-gateway replay)",
    everyValue,
  );
  evaluate.option("--junit <file>", "Also write the outcomes as JUnit XML");
  evaluate.option("--html <file>", "Also write the outcomes as an HTML page");
  on(evaluate, async () => (await import("./commands/sessions/eval.ts")).runEvaluation);
  const add = group.command("add").argument("[chain]", "Id of the chain (default: the newest)");
  add.description("Add recorded chains to the cases").option("--to <file>", "File of the cases", "eval.json");
  add.option("--newest <n>", "Add this many of the newest chains", amount("--newest", 1), 1);
  on(add, async () => (await import("./commands/sessions/eval.ts")).addCases);
}
