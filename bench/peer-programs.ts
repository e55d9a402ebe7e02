// Runs the programs of a third-party client that do not end by themselves: its bridges for ACP and MCP, its
// terminal interface, its node host, and its web page. Each returns what the program has shown.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { dirname, extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";
import type { GatewayClient } from "../src/contract/client/node.ts";
import { TOKEN } from "../tests/kit/process/fleet.ts";
import { Pty } from "../tests/kit/pty.ts";

const LOOK_MS = 200;
const PROGRAM_MAX_MS = 90_000;
const SETTLE_MS = 3_000;

/** A client's program, and a client of the gateway that may do everything. */
export interface ProgramGround {
  readonly bin: string;
  readonly home: string;
  readonly url: string;
  readonly owner: GatewayClient;
}

type Shown = () => string;

const commandOf = ({ bin }: ProgramGround, args: readonly string[]): string[] => [
  process.execPath,
  bin,
  ...args,
];

const envOf = ({ home }: ProgramGround) => ({
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
  HOME: home,
  NO_COLOR: "1",
});

/** Waits until the text matches, or the program has ended, or for `PROGRAM_MAX_MS`. */
async function untilShown(shown: Shown, fits: RegExp, child?: ChildProcess): Promise<void> {
  const isRunning = (): boolean => child === undefined || child.exitCode === null;
  for (let ms = 0; ms < PROGRAM_MAX_MS && !fits.test(shown()) && isRunning(); ms += LOOK_MS)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
}

async function started(
  ground: ProgramGround,
  args: readonly string[],
  work: (child: ChildProcess, shown: Shown) => Promise<void>,
): Promise<string> {
  const [command = "", ...rest] = commandOf(ground, args);
  const child = spawn(command, rest, { env: envOf(ground), cwd: ground.home });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  let text = "";
  const keep = (bytes: Buffer): void => {
    text += bytes.toString();
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  try {
    await work(child, () => text);
    return text;
  } finally {
    child.kill("SIGTERM");
    await ended;
  }
}

interface Request {
  readonly method: string;
  readonly params: (text: string) => object | Promise<object>;
}

/** Sends these JSON-RPC requests one by one, each after the answer to the one before. */
function asked(
  ground: ProgramGround,
  args: readonly string[],
  requests: readonly Request[],
): Promise<string> {
  return started(ground, args, async (child, shown) => {
    for (const [id, { method, params }] of requests.entries()) {
      if (child.exitCode !== null) return;
      const request = { jsonrpc: "2.0", id, method, params: await params(shown()) };
      child.stdin?.write(`${JSON.stringify(request)}\n`);
      await untilShown(shown, new RegExp(`^\\{(?!.*"method":).*"id":${id}[,}]`, "m"), child);
    }
  });
}

/** A prompt over the bridge for ACP. */
export function acp(ground: ProgramGround): Promise<string> {
  const sessionIn = (text: string) => /"sessionId":"([^"]+)"/.exec(text)?.[1] ?? "";
  return asked(
    ground,
    ["acp"],
    [
      { method: "initialize", params: () => ({ protocolVersion: 1, clientCapabilities: {} }) },
      { method: "session/new", params: () => ({ cwd: ground.home, mcpServers: [] }) },
      {
        method: "session/prompt",
        params: (text) => ({
          sessionId: sessionIn(text),
          prompt: [{ type: "text", text: "say all is well" }],
        }),
      },
    ],
  );
}

const MAIN = "agent:main:main";
const MCP_CLIENT = {
  method: "initialize",
  params: () => ({
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "x", version: "1" },
  }),
};

const tool = (name: string, args: object | ((text: string) => object)): Request => ({
  method: "tools/call",
  params: (text) => ({ name, arguments: typeof args === "function" ? args(text) : args }),
});

/** Answers an agent's permission request over the bridge for MCP. */
export async function mcpPermissions(ground: ProgramGround): Promise<string> {
  const runId = "asks-for-permission";
  const text = await asked(
    ground,
    ["mcp", "serve"],
    [
      MCP_CLIENT,
      tool("conversations_list", {}),
      {
        method: "tools/call",
        async params() {
          const asking = { sessionKey: MAIN, message: "run: echo permitted", idempotencyKey: runId };
          await ground.owner.request("chat.send", asking);
          return { name: "events_wait", arguments: { after_cursor: 0, timeout_ms: 20_000 } };
        },
      },
      tool("permissions_list_open", {}),
      tool("permissions_respond", (shown) => {
        const id = /"approvals":\[\{"kind":"exec","id":"([^"]+)"/.exec(shown)?.[1] ?? "";
        return { kind: "exec", id, decision: "allow-once" };
      }),
    ],
  );
  const { status } = await ground.owner.request("agent.wait", { runId });
  const { messages } = await ground.owner.request("chat.history", { sessionKey: MAIN, limit: 5 });
  return `${text}\n${status} ${JSON.stringify(messages)}`;
}

/** Reads and sends messages over the bridge for MCP, and waits for the answer. */
export function mcpServe(ground: ProgramGround): Promise<string> {
  return asked(
    ground,
    ["mcp", "serve"],
    [
      MCP_CLIENT,
      tool("messages_read", { session_key: MAIN }),
      tool("messages_send", { session_key: MAIN, text: "read by events_wait" }),
      tool("events_wait", { after_cursor: 0, timeout_ms: 20_000 }),
    ],
  );
}

/** Pairs the node host, and lists its commands. */
export function nodeHost(ground: ProgramGround): Promise<string> {
  const { port, hostname } = new URL(ground.url);
  const args = ["node", "run", "--host", hostname, "--port", port, "--display-name", "bench"];
  return started(ground, args, async (_, shown) => {
    await untilShown(shown, /its code is/);
    const code = /its code is (\w+-\w+)/.exec(shown())?.[1] ?? "";
    await ground.owner.request("node.pair.approve", { code });
    await untilShown(shown, /gateway connected/);
  });
}

/** Pairs another node host with the client's own commands, renames it, and ends its token. */
export async function devices(ground: ProgramGround): Promise<string> {
  const settings = join(ground.home, ".openclaw/openclaw.json");
  if (!existsSync(settings)) return "needs the settings of openclaw";
  const other = { ...ground, home: join(ground.home, "shed") };
  mkdirSync(join(other.home, ".openclaw"), { recursive: true, mode: 0o700 });
  copyFileSync(settings, join(other.home, ".openclaw/openclaw.json"));
  const printed = (...args: string[]): Promise<string> =>
    started(ground, ["devices", ...args], async (child) => {
      await once(child, "exit");
    });
  const { port, hostname } = new URL(ground.url);
  const args = ["node", "run", "--host", hostname, "--port", port, "--display-name", "shed"];
  let text = "";
  await started(other, args, async (_, shown) => {
    await untilShown(shown, /its code is/);
    const { pending } = JSON.parse(await printed("list", "--json"));
    text += await printed("approve", pending[0].requestId);
    await untilShown(shown, /gateway connected/);
    const { deviceId } = pending[0];
    text += await printed("rename", "--device", deviceId, "--name", "garden shed");
    text += await printed("list");
    text += await printed("remove", deviceId);
  });
  return text;
}

/** Says whether each of these lines is on the screen exactly once, or else how often, with the screen. */
function countLines(screen: string, lines: readonly string[]): string {
  const shown = screen.split("\n").map((line) => line.trim());
  const counts = lines.map((line) => shown.filter((one) => one === line).length);
  if (counts.every((count) => count === 1)) return "each message is shown once";
  const words = lines.map((line, at) => `${JSON.stringify(line)} is shown ${counts[at]} times`);
  return `failed: ${words.join(", ")}\n${screen}`;
}

/** Waits until the screen has these lines, and for the frame after that, in which another one may appear. */
async function readScreen(screen: Shown, [...lines]: readonly string[]): Promise<string> {
  await untilShown(screen, new RegExp(`^\\s*${lines.at(-1)}\\s*$`, "m"));
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  return countLines(screen(), lines);
}

/** Sends a message in the terminal interface, and opens the interface again. */
export async function terminal(ground: ProgramGround): Promise<string> {
  // A session of its own, because the others show what was said there before.
  const lines = ["say the tea is ready", "the tea is ready"];
  const open = async (): Promise<Pty> => {
    const pty = new Pty(commandOf(ground, ["tui", "--session", "tea"]), {
      folder: ground.home,
      env: envOf(ground),
      columns: 120,
      rows: 40,
    });
    await untilShown(() => pty.screen(), /connected/);
    return pty;
  };
  const first = await open();
  first.type(lines[0] ?? "");
  await untilShown(() => first.screen(), /say the tea/);
  first.type("\r");
  const live = await readScreen(() => first.screen(), lines);
  first.type("\u0003\u0003");
  const again = await open();
  const later = await readScreen(() => again.screen(), lines);
  again.type("\u0003\u0003");
  return `${live}\nagain: ${later}`;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".json": "application/json",
};

/** Serves the files of a folder, and passes WebSockets on to the gateway as a reverse proxy does. */
async function served<T>(folder: string, gateway: URL, work: (address: string) => Promise<T>): Promise<T> {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url ?? "/", "http://page").pathname);
    const file = join(folder, path === "/" ? "index.html" : path);
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
    return response.end(readFileSync(file));
  });
  server.on("upgrade", ({ url, headers }, socket) => {
    const behind = connect(Number(gateway.port), gateway.hostname);
    const passed = { ...headers, host: gateway.host, origin: `http://${gateway.host}` };
    const lines = Object.entries(passed).map(([name, value]) => `${name}: ${value}\r\n`);
    behind.write(`GET ${url} HTTP/1.1\r\n${lines.join("")}\r\n`);
    behind.pipe(socket).pipe(behind);
    for (const end of [behind, socket]) end.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  try {
    return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Sends a message on the client's web page. Needs Chromium. */
export async function webPage(ground: ProgramGround): Promise<string> {
  const folder = join(dirname(ground.bin), "../openclaw/dist/control-ui");
  if (!existsSync(folder)) return "the package has no web page";
  return served(folder, new URL(ground.url), async (address) => {
    const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(PROGRAM_MAX_MS);
      await page.goto(`${address}/#token=${TOKEN}`);
      const lines = ["say the page works", "the page works"];
      const look = async (): Promise<string> => {
        await page
          .getByText(/^the page works$/)
          .first()
          .waitFor();
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
        // The title of the session and the announcement for screen readers have the texts, too.
        const bubbles = await page.locator(".chat-bubble").allInnerTexts();
        return countLines(bubbles.join("\n"), lines);
      };
      await page
        .locator("textarea")
        .last()
        .fill(lines[0] ?? "");
      await page.keyboard.press("Enter");
      const live = await look();
      await page.goto(`${address}/#token=${TOKEN}`);
      return `${live}\nagain: ${await look()}`;
    } finally {
      await browser.close();
    }
  });
}
