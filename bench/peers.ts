// Runs third-party clients of the WebSocket protocol against a gateway of this checkout: `npm run peers`.
// Installs them from the npm registry (about a gigabyte, some minutes) into a temporary folder, or into
// `--dir FOLDER`, which is reused the next time. `--only clawdbot` runs only that client. Starts a gateway on
// loopback with its own home, runs the commands of docs/CLIENTS.md with each client, and prints a table for
// that document; `--step "TUI|skills"` runs only some steps. Exit code 1: a command failed that should work.

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import type { GatewayClient } from "../src/contract/client/node.ts";
import { optional } from "../src/core/optional.ts";
import { TOKEN } from "../tests/kit/process/fleet.ts";
import { typed } from "../tests/kit/typed.ts";
import { install, type Manifest } from "./coding-agents.ts";
import {
  acp,
  devices,
  mcpPermissions,
  mcpServe,
  nodeHost,
  type ProgramGround,
  terminal,
  webPage,
} from "./peer-programs.ts";
import { withGateway } from "./with-gateway.ts";

const run = promisify(execFile);
const STEP_MAX_MS = 90_000;
const OUTPUT_MAX_BYTES = 16 * 1024 * 1024;
const SHOWN_CHARS = 160;

interface Peer {
  readonly name: string;
  readonly version: string;
  readonly manifest: Manifest;
  /** Name of the client's settings folder in its home. */
  readonly settings: string;
  /** The prefix of the client's environment variables. */
  readonly prefix: string;
}

const PEERS: readonly Peer[] = [
  {
    name: "clawdbot",
    version: "2026.1.24-3",
    // Overrides a version that the registry no longer has, and adds `strip-ansi`, which the package uses but
    // does not list.
    manifest: {
      dependencies: { clawdbot: "2026.1.24-3", "strip-ansi": "7.1.2" },
      overrides: { libsignal: "2.0.1", linkedom: "0.18.12" },
    },
    settings: ".clawdbot/clawdbot.json",
    prefix: "CLAWDBOT",
  },
  {
    name: "openclaw",
    version: "2026.9.6",
    manifest: { dependencies: { openclaw: "2026.9.6" } },
    settings: ".openclaw/openclaw.json",
    prefix: "OPENCLAW",
  },
];

interface Step {
  readonly what: string;
  /** A command's arguments, or the use of a program that does not end by itself. */
  readonly args: readonly string[] | ((ground: ProgramGround) => Promise<string>);
  /** Matches the output of a successful command. */
  readonly shows: RegExp;
  /** For each command that is known to fail, the reason. The command runs nevertheless. */
  readonly known?: Readonly<Record<string, string>>;
  /** How often a command may run until it works, if the client gives the gateway a fixed time. Default: 1. */
  readonly tries?: number;
  /** `none`: the client has only the device token that it stored earlier. Default: the gateway's token. */
  readonly token?: "wrong" | "none";
}

const call = (method: string, params: object = {}, ...more: string[]): string[] => [
  ...["gateway", "call", method, "--json", "--params", JSON.stringify(params)],
  ...more,
];

const SESSION = { sessionKey: "main" };

const CRON_ADD = [
  "cron",
  "add",
  "--name",
  "tea",
  "--every",
  "1h",
  "--session",
  "isolated",
  "--message",
  "hi",
];

/** Before and after the program was opened again. */
const SHOWN_ONCE = /^each message is shown once\nagain: each message is shown once/;

/** Commands that only the gateways of the client's own project support. */
const THEIR_OWN: readonly Step[] = [
  {
    what: "`gateway probe`",
    args: ["gateway", "probe"],
    shows: /Reachable: yes(?![\s\S]*failed - unknown)/,
    // clawdbot starts many processes, and gives up after 1.5 s, whatever its `--timeout` says.
    tries: 3,
  },
  {
    what: "`models list`",
    args: ["models", "list"],
    shows: /rehearsal/,
    known: { clawdbot: "lists its own configuration, asks no gateway" },
  },
  {
    what: "`channels status`",
    args: ["channels", "status"],
    shows: /webchat/,
    known: { clawdbot: "lists only channels that it knows" },
  },
  {
    what: "`gateway call channels.status`",
    args: call("channels.status", { probe: true, timeoutMs: 1_000 }),
    shows: /"webchat"/,
  },
  {
    what: "`cron list`",
    args: ["cron", "list"],
    shows: /No cron jobs|No automations/,
  },
  {
    what: "`cron add`",
    args: CRON_ADD,
    shows: /"id"/,
    known: { clawdbot: "sends `payload` in place of `message`" },
  },
  {
    what: "`logs`",
    args: ["logs", "--limit", "5", "--plain"],
    shows: /Log file: the gateway's log/,
    known: { clawdbot: "expects lines as text" },
  },
  {
    what: "`devices list`",
    args: ["devices", "list"],
    shows: /Paired|No device pairing/,
    known: { clawdbot: "`device.pair.list` is a form of version 4" },
  },
  {
    what: "`devices join-code`, `rotate` are refused in words",
    args: ["devices", "rotate", "--device", "x", "--role", "operator"],
    shows: /device\.token\.revoke ends a token/,
  },
  {
    what: "`nodes list`",
    args: ["nodes", "list"],
    shows: /Pending: 0/,
  },
  { what: "`system presence`", args: ["system", "presence"], shows: /connId/ },
  {
    what: "`system event`",
    args: ["system", "event", "--text", "the build is done", "--mode", "now"],
    shows: /^ok$/m,
  },
  {
    what: "`system heartbeat last`",
    args: ["system", "heartbeat", "last"],
    shows: /^null$/m,
    known: { clawdbot: "`last-heartbeat` is a form of version 4" },
  },
  {
    what: "`system heartbeat disable` is refused in words",
    args: ["system", "heartbeat", "disable"],
    shows: /cron\.add makes a scheduled job/,
  },
  {
    what: "`skills list`",
    args: ["skills", "list"],
    shows: /brew/,
    known: { clawdbot: "lists its own skills, asks no gateway" },
  },
  {
    what: "`hooks list`",
    args: ["hooks", "list"],
    shows: /No hooks found/,
    known: { clawdbot: "lists its own hooks, asks no gateway" },
  },
  {
    what: "`gateway call message.action`",
    args: call("message.action", {
      channel: "webchat",
      action: "send",
      params: { to: "main", message: "the build is done" },
      idempotencyKey: "action",
    }),
    shows: /"queued"/,
    known: { clawdbot: "`message.action` is a form of version 4; `send` works" },
  },
  {
    what: "`message send --channel webchat`",
    args: ["message", "send", "--channel", "webchat", "--target", "main", "--message", "hi"],
    shows: /messageId|sent/i,
    known: { clawdbot: "knows no channel webchat", openclaw: "knows no channel webchat" },
  },
  { what: "TUI: each message once", args: terminal, shows: SHOWN_ONCE },
  {
    what: "`acp`",
    args: acp,
    shows: /"stopReason":"end_turn"/,
    known: { clawdbot: "compares the keys of events with its own short key; `--session` takes a whole one" },
  },
  {
    what: "`mcp serve`",
    args: mcpServe,
    shows: /"text":"event 1"/,
    known: { clawdbot: "has no such command" },
  },
  {
    what: "`mcp serve`: answers a permission request",
    args: mcpPermissions,
    shows: /"conversation":\{[\s\S]*approval resolved[\s\S]*\nok .*permitted/,
    known: { clawdbot: "has no such command" },
  },
  {
    what: "node host",
    args: nodeHost,
    shows: /gateway connected/,
    known: { clawdbot: "needs a minute until it tries again" },
  },
  {
    what: "`devices approve`, then `rename`, `remove` and `list`",
    args: devices,
    shows: /Approved[\s\S]*Renamed[\s\S]*Removed/,
    known: { clawdbot: "`device.pair.list` is a form of version 4" },
  },
  {
    what: "web control UI, served by another program: each message once",
    args: webPage,
    shows: SHOWN_ONCE,
    known: { clawdbot: "its gateway serves it" },
  },
];

function stepsOf(id: string): readonly Step[] {
  const sent = { ...SESSION, message: "say hello from outside", idempotencyKey: `${id}-send` };
  const asked = { ...SESSION, message: "say done", idempotencyKey: `${id}-agent` };
  return [
    {
      what: "a wrong token is refused",
      args: ["gateway", "health"],
      shows: /unauthorized|token/i,
      token: "wrong",
    },
    { what: "`gateway health`", args: ["gateway", "health"], shows: /OK[\s\S]*webchat: configured/ },
    {
      what: "again, by the device token it was given",
      args: ["gateway", "health"],
      shows: /OK/,
      token: "none",
      known: { openclaw: "with a shared token it names no device, so it is given no device token" },
    },
    { what: "`gateway call health`", args: call("health"), shows: /"ok": true/ },
    { what: "`gateway call status`", args: call("status"), shows: /"protocol"/ },
    { what: "`gateway call agents.list`", args: call("agents.list"), shows: /"defaultId": "main"/ },
    {
      what: "`gateway call sessions.list`",
      args: call("sessions.list", { limit: 5 }),
      shows: /agent:main:main/,
    },
    {
      what: "`gateway call sessions.resolve`",
      args: call("sessions.resolve", { key: "main" }),
      shows: /agent:main/,
    },
    { what: "`gateway call chat.send`", args: call("chat.send", sent), shows: /"status": "started"/ },
    {
      what: "`gateway call agent.wait`",
      args: call("agent.wait", { runId: `${id}-send` }),
      shows: /"status": "ok"/,
    },
    { what: "`gateway call chat.history`", args: call("chat.history", SESSION), shows: /hello from outside/ },
    {
      what: "`gateway call agent --expect-final`",
      args: call("agent", asked, "--expect-final"),
      shows: /"text": "done"/,
    },
    {
      what: "`gateway call sessions.patch`",
      args: call("sessions.patch", { key: "main", label: id }),
      shows: /label/,
    },
    {
      what: "`gateway call sessions.preview`",
      args: call("sessions.preview", { keys: ["main"] }),
      shows: /"ok"/,
    },
    {
      what: "`gateway call sessions.compact`",
      args: call("sessions.compact", { key: "main" }),
      shows: /"compacted": true/,
      known: { clawdbot: "sends no `idempotencyKey`" },
    },
    {
      what: "`agent --agent main`",
      args: ["agent", "--agent", "main", "--message", "say all is well"],
      shows: /^all is well$/m,
    },
    ...THEIR_OWN,
  ];
}

interface Ground extends ProgramGround {
  readonly peer: Peer;
}

/**
 * Writes the gateway's address and token into the client's settings, because not every command accepts
 * `--token`.
 */
function settle({ peer, home, url }: Ground, token: string | undefined): void {
  const file = join(home, peer.settings);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const remote = { url, ...optional({ token }) };
  writeFileSync(file, JSON.stringify({ gateway: { mode: "remote", remote } }), { mode: 0o600 });
}

async function said(ground: Ground, args: Step["args"]): Promise<string> {
  if (typeof args === "function") return args(ground).catch((error: Error) => error.message);
  const { bin, home } = ground;
  const path = `${dirname(process.execPath)}:${process.env.PATH}`;
  const env = { PATH: path, HOME: home, NO_COLOR: "1" };
  const limits = { env, cwd: home, timeout: STEP_MAX_MS, maxBuffer: OUTPUT_MAX_BYTES };
  const printed = await run(process.execPath, [bin, ...args], limits).catch(
    (error: { stdout?: string; stderr?: string }) => error,
  );
  return `${printed.stdout ?? ""}${printed.stderr ?? ""}`;
}

function lastLine(text: string): string {
  const lines = text.split("\n").filter((line) => /error|unknown|failed/i.test(line));
  return (lines.at(0) ?? text.trim().split("\n").at(-1) ?? "").trim().slice(0, SHOWN_CHARS);
}

/** Runs a command and prints its row of the table; returns false if it failed unexpectedly. */
async function tryOne(ground: Ground, step: Step): Promise<boolean> {
  const { name } = ground.peer;
  settle(ground, step.token === undefined ? TOKEN : step.token === "wrong" ? "a-wrong-token" : undefined);
  let text = "";
  let works = false;
  for (let left = step.tries ?? 1; left > 0 && !works; left -= 1) {
    text = await said(ground, step.args);
    works = step.shows.test(text);
  }
  const known = step.known?.[name];
  const why = works ? "" : (known ?? lastLine(text)).replaceAll("|", "\\|");
  console.log(`| ${step.what} | ${works ? "yes" : "no"} | ${why} |`);
  return works || known !== undefined;
}

async function meet(peer: Peer, folder: string, url: string, owner: GatewayClient): Promise<boolean> {
  const own = join(folder, peer.name);
  await install(own, peer.manifest, ["--ignore-scripts"]);
  const bin = join(own, "node_modules/.bin", peer.name);
  const home = mkdtempSync(join(tmpdir(), `parley-peer-${peer.name}-`));
  const ground: Ground = { peer, bin, home, url, owner };
  console.log(`\n### ${peer.name} ${peer.version}\n\n| | works | why not |\n|---|---|---|`);
  let fine = true;
  try {
    for (const step of stepsOf(peer.name))
      if (wanted.test(step.what)) fine = (await tryOne(ground, step)) && fine;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  return fine;
}

const USAGE = `npm run peers -- [options]
  --dir DIR    install into DIR, and reuse it the next time
  --only NAME  run only this client: ${PEERS.map(({ name }) => name).join(", ")}
  --step REGEX run only the steps with such a name`;
const values = typed(USAGE, { dir: { type: "string" }, only: { type: "string" }, step: { type: "string" } });
const wanted = new RegExp(values.step ?? "");
const kept = values.dir !== undefined;
const folder = resolve(values.dir ?? mkdtempSync(join(tmpdir(), "parley-peers-")));
const home = mkdtempSync(join(tmpdir(), "parley-peers-gateway-"));
const skill = join(home, ".parley/workspace/skills/brew");
mkdirSync(skill, { recursive: true });
writeFileSync(join(skill, "SKILL.md"), "---\nname: brew\ndescription: Brewing tea.\n---\nUse hot water.\n");
let fine = true;
try {
  await withGateway(home, { tools: { exec: { approval: "always" } } }, async ({ wsUrl, client }) => {
    for (const peer of PEERS) {
      if (values.only !== undefined && values.only !== peer.name) continue;
      fine = (await meet(peer, folder, wsUrl, client)) && fine;
    }
  });
} finally {
  rmSync(home, { recursive: true, force: true });
  if (!kept) rmSync(folder, { recursive: true, force: true });
}
process.exitCode = fine ? 0 : 1;
