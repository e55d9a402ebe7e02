// Runs the programs of a third-party client that do not end by themselves: its bridges for ACP and MCP, its
// terminal interface, its node host, and its web page. Each returns what the program has shown.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { dirname, extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";
import type { GatewayClient } from "../src/contract/client/node.ts";
import { TOKEN } from "../tests/kit/process/fleet.ts";
import { Pty } from "../tests/kit/pty.ts";

const LOOK_MS = 200;
const PROGRAM_MAX_MS = 90_000;

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

/** Waits until the text matches, or for `PROGRAM_MAX_MS`. */
async function untilShown(shown: Shown, fits: RegExp): Promise<void> {
  for (let ms = 0; ms < PROGRAM_MAX_MS && !fits.test(shown()); ms += LOOK_MS)
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
  readonly params: (text: string) => object;
}

/** Sends these JSON-RPC requests one by one, each after the answer to the one before. */
function asked(
  ground: ProgramGround,
  args: readonly string[],
  requests: readonly Request[],
): Promise<string> {
  return started(ground, args, async (child, shown) => {
    for (const [id, { method, params }] of requests.entries()) {
      child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params: params(shown()) })}\n`);
      await untilShown(shown, new RegExp(`^\\{(?!.*"method":).*"id":${id}[,}]`, "m"));
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

/** Reads and sends messages over the bridge for MCP, and waits for the answer. */
export function mcpServe(ground: ProgramGround): Promise<string> {
  const key = "agent:main:main";
  const tool = (name: string, args: object): Request => ({
    method: "tools/call",
    params: () => ({ name, arguments: args }),
  });
  const client = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } };
  return asked(
    ground,
    ["mcp", "serve"],
    [
      { method: "initialize", params: () => client },
      tool("messages_read", { session_key: key }),
      tool("messages_send", { session_key: key, text: "read by events_wait" }),
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

/** Sends a message in the terminal interface. */
export async function terminal(ground: ProgramGround): Promise<string> {
  const pty = new Pty(commandOf(ground, ["tui"]), {
    folder: ground.home,
    env: envOf(ground),
    columns: 120,
    rows: 40,
  });
  await untilShown(() => pty.screen(), /connected/);
  pty.type("say all is well");
  await untilShown(() => pty.screen(), /say all is well/);
  pty.type("\r");
  await untilShown(() => pty.screen(), /^\s*all is well/m);
  const screen = pty.screen();
  pty.type("\u0003\u0003");
  return screen;
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
      await page.locator("textarea").last().fill("say the page works");
      await page.keyboard.press("Enter");
      await page.getByText(/^the page works$/).waitFor();
      return await page.innerText("body");
    } finally {
      await browser.close();
    }
  });
}
