// An MCP server in a separate process. Its argument is a JSON object that says how it misbehaves. It reports
// events to a socket of the test (the witness), which closes when the program dies.

import { spawn } from "node:child_process";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const PROGRAM = fileURLToPath(import.meta.url);

export interface Deeds {
  /** The port of the witness. */
  readonly witness: number;
  /** The entries of the program's list of tools, sent unchanged. */
  readonly tools?: readonly unknown[];
  /** The list of tools after a call of the tool `change`. */
  readonly toolsLater?: readonly unknown[];
  /** Results by method, instead of the program's own. */
  readonly results?: Readonly<Record<string, unknown>>;
  /** The same, after a call of the tool `change`. */
  readonly resultsLater?: Readonly<Record<string, unknown>>;
  /** The program never answers. */
  readonly mute?: boolean;
  /** The program answers only after the test has sent a byte over the witness socket. */
  readonly slow?: boolean;
  /** The program exits at an unknown request, as some old servers do. */
  readonly old?: boolean;
  /** Lines that the program writes to standard output although they are not messages. */
  readonly noise?: readonly string[];
  /** Number of bytes that the program writes to standard error. */
  readonly flood?: number;
  /** The program writes this text to standard error and exits. */
  readonly lastWords?: string;
  /** The program ignores requests to exit. */
  readonly stubborn?: boolean;
  /** The program starts a child process and leaves it behind. */
  readonly helper?: boolean;
}

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
  readonly error?: unknown;
}

const MUTE_METHODS = ["silent"];

class BadServer {
  readonly #deeds: Deeds;
  readonly #witness: Socket;
  #changed = false;
  /** Takes the reply to a question of the program, by the id of the question. */
  readonly #asking = new Map<Message["id"], (reply: string) => void>();

  constructor(deeds: Deeds, witness: Socket) {
    this.#deeds = deeds;
    this.#witness = witness;
  }

  tell(event: string): void {
    this.#witness.write(`${event}\n`);
  }

  say(message: unknown): void {
    process.stdout.write(`${JSON.stringify(message)}\n`);
  }

  answer(id: Message["id"], result: unknown): void {
    this.say({ jsonrpc: "2.0", id, result });
  }

  take(message: Message): void {
    const { id, method = "", params = {} } = message;
    if (message.method === undefined) {
      const reply = JSON.stringify(message.result ?? message.error);
      this.tell(`reply ${reply}`);
      this.#asking.get(id)?.(reply);
      return;
    }
    if (method === "notifications/cancelled") this.tell(`cancelled ${String(params.requestId)}`);
    if (id === undefined || this.#deeds.mute === true) return;
    const { results = {}, resultsLater = results } = this.#deeds;
    const result = (this.#changed ? resultsLater : results)[method];
    if (result !== undefined) {
      this.answer(id, result);
      return;
    }
    switch (method) {
      case "initialize":
        this.answer(id, {
          protocolVersion: "2025-06-18",
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: "bad", version: "1" },
        });
        return;
      case "tools/list": {
        const { tools = [], toolsLater = [] } = this.#deeds;
        this.answer(id, { tools: this.#changed ? toolsLater : tools });
        return;
      }
      case "tools/call":
        this.#call(id, String(params.name), params.arguments as Record<string, unknown>);
        return;
      default:
        if (this.#deeds.old === true) process.exit(3);
        this.say({ jsonrpc: "2.0", id, error: { code: -32601, message: "no such method" } });
    }
  }

  #text(id: Message["id"], text: string): void {
    this.answer(id, { content: [{ type: "text", text }] });
  }

  #call(id: Message["id"], name: string, args: Record<string, unknown>): void {
    this.tell(`call ${name}`);
    if (MUTE_METHODS.includes(name)) return;
    switch (name) {
      case "die":
      case "read-and-die":
        process.exit(1);
        break;
      case "die-once":
        // Waits for a byte from the test, because the test counts the calls before the program dies.
        this.#witness.once("data", (word) => {
          if (word.toString().trim() === "die") process.exit(1);
          this.#text(id, "answered at last");
        });
        break;
      case "change":
        this.#changed = true;
        this.say({ jsonrpc: "2.0", method: `notifications/${String(args.list ?? "tools")}/list_changed` });
        this.#text(id, "changed");
        break;
      case "giant":
        this.#giant(id, Number(args.bytes), args.idFirst === true);
        break;
      case "values":
        process.stdout.write(`{"jsonrpc":"2.0","id":${id},"result":{"list":[${"{},".repeat(200_000)}0]}}\n`);
        break;
      case "content":
        this.answer(id, args.result);
        break;
      case "ask":
        this.#asking.set(`q${id}`, (reply) => this.#text(id, reply));
        this.say({ jsonrpc: "2.0", id: `q${id}`, ...(args as object) });
        break;
      case "ask-and-go":
        this.say({ jsonrpc: "2.0", id: `q${id}`, ...(args as object) });
        this.#witness.once("data", () => this.#text(id, "went"));
        break;
      case "environment":
        this.#text(id, JSON.stringify(process.env));
        break;
      default:
        this.#text(id, `${name} ${JSON.stringify(args)} by ${process.pid}`);
    }
  }

  #giant(id: Message["id"], bytes: number, idFirst: boolean): void {
    const result = { content: [{ type: "text", text: "x".repeat(bytes) }] };
    const frame = idFirst ? { jsonrpc: "2.0", id, result } : { result, jsonrpc: "2.0", id };
    process.stdout.write(`${JSON.stringify(frame)}\n`);
  }
}

async function main(deeds: Deeds): Promise<void> {
  const witness = connect(deeds.witness, "127.0.0.1");
  await new Promise((resolve) => witness.once("connect", resolve));
  const server = new BadServer(deeds, witness);
  server.tell(`started ${process.pid}`);
  if (deeds.lastWords !== undefined) {
    await new Promise((resolve) => process.stderr.write(`${deeds.lastWords}\n`, resolve));
    process.exit(2);
  }
  if (deeds.helper === true) {
    // The child process is in the same process group, but has its own connection to the witness.
    const script = `require("node:net").connect(${deeds.witness}, "127.0.0.1").write("helper\\n")`;
    spawn(process.execPath, ["-e", script], { stdio: "ignore" });
  }
  if (deeds.stubborn === true) {
    process.on("SIGTERM", () => server.tell("SIGTERM"));
    setInterval(() => {}, 1_000);
  }
  for (const line of deeds.noise ?? []) process.stdout.write(`${line}\n`);
  for (let left = deeds.flood ?? 0; left > 0; left -= 65_536) process.stderr.write("e".repeat(65_536));
  if (deeds.slow === true) await new Promise((resolve) => witness.once("data", resolve));
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => server.take(JSON.parse(line) as Message));
  lines.on("close", () => {
    server.tell("end of input");
    if (deeds.stubborn !== true) process.exit(0);
  });
}

if (process.argv[1] === PROGRAM) await main(JSON.parse(process.argv[2] ?? "{}") as Deeds);
