// Converts the requests of four APIs to one form, so that a script can read all of them.

import type { IncomingHttpHeaders } from "node:http";
import { optional } from "../../../src/core/optional.ts";
import { HEADING } from "../../../src/core/rules/turn-rules.ts";
import type { ProviderApi } from "../../../src/core/shapes/settings/settings.ts";

export interface ServedMessage {
  readonly role: "user" | "assistant" | "tool";
  /** The text of each block of the message. */
  readonly texts: readonly string[];
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: unknown }[];
  /** Id of the tool call to which this result belongs. */
  readonly callId?: string;
}

export interface ServedRequest {
  readonly api: ProviderApi;
  readonly model: string;
  readonly system: string;
  /** The agent-to-agent step (such as the announce step) that the system prompt names. */
  readonly step?: keyof typeof HEADING;
  /** Id of the calling agent, taken from the system prompt. */
  readonly agentId?: string;
  /** Key of the calling session, taken from the system prompt. */
  readonly sessionKey?: string;
  readonly messages: readonly ServedMessage[];
  readonly toolNames: readonly string[];
  /**
   * Text of the last message of a person, a session or the runtime, without the label that the gateway
   * adds.
   */
  readonly lastUserText: string;
  /** Results of tool calls since that message, oldest first. */
  readonly toolResults: readonly string[];
  readonly body: Readonly<Record<string, unknown>>;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Settles when the answer is complete or the client has disconnected. */
  readonly gone: Promise<void>;
}

type Json = Record<string, unknown>;

export function normalise(
  api: ProviderApi,
  path: string,
  body: Json,
  headers: IncomingHttpHeaders,
  gone: Promise<void>,
): ServedRequest {
  const { system, messages } = READERS[api](body);
  const lastUser = messages.findLastIndex((message) => message.role === "user");
  const step = stepOf(system);
  const agentId = /^You are the agent "([^"]+)"/m.exec(system)?.[1];
  const sessionKey = /^Session: (.+)$/m.exec(system)?.[1];
  return {
    api,
    model: String(body.model ?? /models\/([^:]+):/.exec(path)?.[1] ?? ""),
    system,
    ...optional({ step, agentId, sessionKey }),
    messages,
    toolNames: toolNames(body),
    lastUserText: messages[lastUser]?.texts.at(-1) ?? "",
    toolResults: messages
      .slice(lastUser + 1)
      .filter((message) => message.role === "tool")
      .map((message) => message.texts.join("\n")),
    body,
    path,
    headers,
    gone,
  };
}

function stepOf(system: string): keyof typeof HEADING | undefined {
  const headings = Object.entries(HEADING) as [keyof typeof HEADING, string][];
  const lines = system.split("\n");
  const line = lines.find((one) => headings.some(([, heading]) => heading === one));
  return headings.find(([, heading]) => heading === line)?.[0];
}

type Read = (body: Json) => { system: string; messages: ServedMessage[] };

const READERS: Record<ProviderApi, Read> = {
  "openai-completions": readCompletions,
  "openai-responses": readResponses,
  "anthropic-messages": readAnthropic,
  "google-generative-ai": readGoogle,
};

function list(value: unknown): Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}

/** Returns the texts in a message's content, which is a string or an array of blocks. */
function textsOf(content: unknown): string[] {
  if (typeof content === "string") return [content];
  return list(content).flatMap((block) => (typeof block.text === "string" ? [block.text] : []));
}

function parsed(json: unknown): unknown {
  try {
    return JSON.parse(String(json));
  } catch {
    return json;
  }
}

function readCompletions(body: Json) {
  const all = list(body.messages);
  const isSystem = (one: Json): boolean => one.role === "system" || one.role === "developer";
  const messages = all
    .filter((one) => !isSystem(one))
    .map((one): ServedMessage => {
      const calls = list(one.tool_calls).map((call) => {
        const fn = call.function as Json;
        return { id: String(call.id), name: String(fn.name), arguments: parsed(fn.arguments) };
      });
      const callId = one.tool_call_id;
      return {
        role: one.role as ServedMessage["role"],
        texts: textsOf(one.content),
        calls,
        ...(callId === undefined ? {} : { callId: String(callId) }),
      };
    });
  return {
    system: all
      .filter(isSystem)
      .flatMap((one) => textsOf(one.content))
      .join("\n"),
    messages,
  };
}

function readResponses(body: Json) {
  let system = "";
  const messages: ServedMessage[] = [];
  for (const item of list(body.input)) {
    const texts = textsOf(item.content);
    if (item.role === "system" || item.role === "developer") system += texts.join("\n");
    else if (item.type === "function_call") {
      const made = { id: String(item.call_id), name: String(item.name), arguments: parsed(item.arguments) };
      const last = messages.at(-1);
      if (last?.role === "assistant")
        messages[messages.length - 1] = { ...last, calls: [...last.calls, made] };
      else messages.push({ role: "assistant", texts: [], calls: [made] });
    } else if (item.type === "function_call_output") {
      const output = textsOf(item.output);
      messages.push({ role: "tool", texts: output, calls: [], callId: String(item.call_id) });
    } else if (item.role !== undefined) {
      messages.push({ role: item.role as ServedMessage["role"], texts, calls: [] });
    }
  }
  return { system, messages };
}

function readAnthropic(body: Json) {
  const all = list(body.messages);
  const isSystem = (one: Json): boolean => one.role === "system";
  const messages = all.flatMap((one): ServedMessage[] => {
    if (isSystem(one)) return [];
    const blocks = list(one.content);
    const results = blocks
      .filter((block) => block.type === "tool_result")
      .map(
        (block): ServedMessage => ({
          role: "tool",
          texts: textsOf(block.content),
          calls: [],
          callId: String(block.tool_use_id),
        }),
      );
    if (results.length > 0) return results;
    const calls = blocks
      .filter((block) => block.type === "tool_use")
      .map((block) => ({ id: String(block.id), name: String(block.name), arguments: block.input }));
    return [{ role: one.role as ServedMessage["role"], texts: textsOf(one.content), calls }];
  });
  const system = [body.system, ...all.filter(isSystem).map(({ content }) => content)].flatMap(textsOf);
  return { system: system.join("\n"), messages };
}

function readGoogle(body: Json) {
  const messages = list(body.contents).flatMap((one): ServedMessage[] => {
    const parts = list(one.parts);
    const results = parts
      .filter((part) => part.functionResponse !== undefined)
      .map((part): ServedMessage => {
        const made = part.functionResponse as Json;
        const response = made.response as Json;
        const said = String(response.output ?? response.error);
        return { role: "tool", texts: [said], calls: [], callId: String(made.id ?? made.name) };
      });
    if (results.length > 0) return results;
    const calls = parts
      .filter((part) => part.functionCall !== undefined)
      .map((part) => {
        const made = part.functionCall as Json;
        return { id: String(made.id ?? made.name), name: String(made.name), arguments: made.args };
      });
    const role = one.role === "model" ? "assistant" : "user";
    return [{ role, texts: textsOf(parts), calls }];
  });
  const instruction = body.systemInstruction as Json | undefined;
  return { system: textsOf(instruction?.parts).join("\n"), messages };
}

function toolNames(body: Json): string[] {
  return list(body.tools).flatMap((tool) => {
    const declared = list(tool.functionDeclarations);
    if (declared.length > 0) return declared.map((one) => String(one.name));
    const fn = tool.function as Json | undefined;
    const name = String(fn?.name ?? tool.name ?? tool.type);
    return tool.type === "namespace" ? list(tool.tools).map((one) => `${name}/${one.name}`) : [name];
  });
}
