// A model that makes the calls it is told to, one by one, so that a bench can work with a coding program as
// if it were a client library: it calls a tool of the program's MCP server, and reads the result.

import type { ServedRequest } from "../tests/kit/model-server/requests.ts";
import type { Answer } from "../tests/kit/model-server/server.ts";
import { call, type Step, text, usage } from "../tests/kit/model-server/steps.ts";

/** Looks for a tool before a program is believed to have none: its MCP server connects meanwhile. */
const LOOKS_MAX = 30;
const LOOK_MS = 500;

/** A call that every program can make: whether it succeeds is no matter. */
export function anyCall({ toolNames }: ServedRequest): Step {
  const name = toolNames.find((one) => /sessions_list$|^(Read|read|read_file|exec_command)$/.test(one));
  return call(name ?? toolNames[0] ?? "none", { file_path: "/none", cmd: "true", filePath: "/none" });
}

interface Wanted {
  readonly name: string;
  readonly args: Record<string, unknown>;
  readonly result: PromiseWithResolvers<string>;
  /** Requests that came without its result. */
  looks: number;
  isMade: boolean;
}

/** Builds the call of a tool of `parley`; undefined: the program does not offer that tool yet. */
function ownCall(
  { api, toolNames, messages, body }: ServedRequest,
  { name, args }: Wanted,
): Step | undefined {
  const shown = toolNames.find((one) => one.endsWith(name));
  if (shown !== undefined) return call(shown, args);
  const full = `mcp__parley__${name}`;
  // Qwen Code calls a tool that it offers late by another tool, once the model has read its description.
  const isRead = messages.some(({ role, texts }) => role === "tool" && texts.join().includes(`"${full}"`));
  if (toolNames.includes("tool_call") && isRead) return call("tool_call", { name: full, arguments: args });
  // Codex takes a call of each tool of a connected server, and names the servers in its search tool.
  const isConnected = JSON.stringify(body.tools).includes("\\n- parley: ");
  return api === "openai-responses" && isConnected ? call(`mcp__parley/${name}`, args) : undefined;
}

/** Builds a call of the program's own tool search; undefined: the program has no such search. */
function searchFor(name: string, { toolNames }: ServedRequest): Step | undefined {
  const search = toolNames.find((one) => one === "ToolSearch" || one === "tool_search");
  return search === undefined ? undefined : call(search, { query: `select:mcp__parley__${name}` });
}

export class Puppet {
  #wanted: Wanted | undefined;
  #next = Promise.withResolvers<void>();

  /** Makes the model call a tool. Returns the result's text. */
  async call(name: string, args: Record<string, unknown> = {}): Promise<string> {
    const result = Promise.withResolvers<string>();
    this.#wanted = { name, args, result, looks: 0, isMade: false };
    this.#next.resolve();
    return result.promise;
  }

  /** Lets the model end its turn. */
  end(): void {
    this.#wanted = undefined;
    this.#next.resolve();
  }

  /** Answers a request of the program. */
  async answer(request: ServedRequest): Promise<Answer> {
    // Programs ask side questions, without tools: titles, summaries.
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
