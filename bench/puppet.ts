// A scripted model that lets a benchmark call a coding agent's MCP tools, as if the agent were a client
// library: the model calls the tool, and passes the result to the benchmark.

import { spawn } from "node:child_process";
import type { ServedRequest } from "../tests/kit/model-server/requests.ts";
import type { Answer } from "../tests/kit/model-server/server.ts";
import { call, type Step, text, usage } from "../tests/kit/model-server/steps.ts";

/** Maximum number of model requests without the tool, while the agent is still connecting its MCP server. */
const LOOKS_MAX = 30;
const LOOK_MS = 500;
/** Maximum time of a headless run. */
const PROGRAM_MAX_MS = 180_000;

/** Calls one of Parley's tools through a program that is an MCP client. */
export type OwnTool<Answer = unknown> = (name: string, args: Record<string, unknown>) => Promise<Answer>;

/** A program that takes a prompt after its arguments. */
interface HeadlessProgram {
  readonly name: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** Returns a call of a tool that the agent offers. The call may fail. */
export function anyCall({ toolNames }: ServedRequest): Step {
  const name = toolNames.find((one) => /sessions_list$|^(Read|read|read_file|exec_command)$/.test(one));
  return call(name ?? toolNames[0] ?? "none", { file_path: "/none", cmd: "true", filePath: "/none" });
}

interface Wanted {
  readonly name: string;
  readonly args: Record<string, unknown>;
  readonly result: PromiseWithResolvers<string>;
  /** Number of requests so far that did not offer the tool. */
  looks: number;
  isMade: boolean;
}

/**
 * Returns the call of a tool of the MCP server `parley`, or undefined if the agent does not offer that tool
 * yet.
 */
function ownCall(
  { api, toolNames, messages, body }: ServedRequest,
  { name, args }: Wanted,
): Step | undefined {
  const shown = toolNames.find((one) => one.endsWith(name));
  if (shown !== undefined) return call(shown, args);
  const full = `mcp__parley__${name}`;
  // Qwen Code calls some MCP tools only through its tool `tool_call`, and only after the model has read their
  // description.
  const isRead = messages.some(({ role, texts }) => role === "tool" && texts.join().includes(`"${full}"`));
  if (toolNames.includes("tool_call") && isRead) return call("tool_call", { name: full, arguments: args });
  // Codex lists the connected servers in the description of its search tool, and accepts calls of all their
  // tools.
  const isConnected = JSON.stringify(body.tools).includes("\\n- parley: ");
  return api === "openai-responses" && isConnected ? call(`mcp__parley/${name}`, args) : undefined;
}

/** Returns a call of the agent's own tool search, or undefined if it has none. */
function searchFor(name: string, { toolNames }: ServedRequest): Step | undefined {
  const search = toolNames.find((one) => one === "ToolSearch" || one === "tool_search");
  return search === undefined ? undefined : call(search, { query: `select:mcp__parley__${name}` });
}

export class Puppet {
  #wanted: Wanted | undefined;
  #next = Promise.withResolvers<void>();

  /** Makes the model call a tool. Returns the text of the result. */
  async call(name: string, args: Record<string, unknown> = {}): Promise<string> {
    const result = Promise.withResolvers<string>();
    this.#wanted = { name, args, result, looks: 0, isMade: false };
    this.#next.resolve();
    return result.promise;
  }

  /** Makes the model end its turn. */
  end(): void {
    this.#wanted = undefined;
    this.#next.resolve();
  }

  /** Answers a request of the coding agent. */
  async answer(request: ServedRequest): Promise<Answer> {
    // Requests without tools ask for a title or a summary.
    if (request.toolNames.length === 0) return "A title";
    const last = request.messages.at(-1);
    if (this.#wanted?.isMade === true && last?.role === "tool") {
      this.#next = Promise.withResolvers();
      const { result } = this.#wanted;
      this.#wanted = undefined;
      result.resolve(last.texts.join("\n"));
    }
    await this.#next.promise;
    return [await this.#step(request), usage({ input: 100, output: 20 })];
  }

  async #step(request: ServedRequest): Promise<Step> {
    const wanted = this.#wanted;
    if (wanted === undefined) return text("Done.");
    const made = ownCall(request, wanted);
    if (made !== undefined) {
      wanted.isMade = true;
      return made;
    }
    wanted.looks += 1;
    if (wanted.looks > LOOKS_MAX) {
      wanted.result.reject(new Error(`no tool ${wanted.name} among ${request.toolNames.join()}`));
      return text("Done.");
    }
    await new Promise((done) => setTimeout(done, LOOK_MS));
    return searchFor(wanted.name, request) ?? anyCall(request);
  }
}

/** Runs a program whose model is the puppet, while `work` calls its tools. */
export async function withProgram<T>(
  { name: shown, command, env, cwd }: HeadlessProgram,
  puppet: Puppet,
  work: (tool: OwnTool<string>) => Promise<T>,
): Promise<T> {
  const [file = "", ...args] = command;
  const child = spawn(file, [...args, "Work with the other sessions."], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (said += String(chunk)));
  const late = setTimeout(() => child.kill(), PROGRAM_MAX_MS);
  const exited = new Promise<never>((_, reject) => {
    child.once("exit", (code) => reject(new Error(`${shown} ended with ${code}:\n${said.slice(-2_000)}`)));
  });
  exited.catch(() => {});
  try {
    return await work((name, given) => Promise.race([puppet.call(name, given), exited]));
  } finally {
    puppet.end();
    await exited.catch(() => {});
    clearTimeout(late);
  }
}
