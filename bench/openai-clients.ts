// Runs agents of other projects against a gateway of this checkout: AI SDK, LangChain, OpenAI's Agents SDK
// and pi, over both of OpenAI's APIs, streamed and not. A scripted server replaces the model. Each agent has
// two tools of its own, and the gateway's agent calls one of its own in between. FOLDER gets the packages:
// node bench/openai-clients.ts FOLDER. Exit code 1: an agent got a wrong answer.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { normalizeContext } from "@earendil-works/pi-ai/utils/transcript";
import { type Script, startModelServer } from "../tests/kit/model-server/server.ts";
import { call, text } from "../tests/kit/model-server/steps.ts";
import { TOKEN } from "../tests/kit/process/fleet.ts";
import { install } from "./coding-agents.ts";
import { withGateway } from "./with-gateway.ts";

const PACKAGES = {
  ai: "7.0.173",
  "@ai-sdk/openai": "4.0.118",
  "@ai-sdk/openai-compatible": "3.0.92",
  "@langchain/core": "1.4.0",
  "@langchain/openai": "1.6.0",
  "@openai/agents": "0.20.0",
  zod: "4.6.7",
};
const MODEL = "parley/main";
const QUESTION = "How is the weather?";
const ANSWER = "Done: rain in Bern, sun in Rome, noon";
const THANKS = "Thanks";
const WELCOME = "You are welcome";
const NAMES = "Weather of a city";

/** Asks for the weather twice, then for the gateway's agents, then for the time, and then answers. */
const script: Script = ({ lastUserText, toolResults: results }) => {
  if (lastUserText.includes(THANKS)) return WELCOME;
  if (results.length === 0)
    return [text("I ask."), call("weather", { city: "Bern" }), call("weather", { city: "Rome" })];
  if (results.length === 2) return [call("agents_list")];
  if (results.length === 3) return [call("clock", {})];
  return `Done: ${[results[0], results[1], results[3]].join(", ")}`;
};

const weather = ({ city }: { city: string }): string => (city === "Bern" ? "rain in Bern" : `sun in ${city}`);
const clock = (): string => "noon";

// biome-ignore lint/suspicious/noExplicitAny: the packages are not installed where types are checked.
type Loaded = any;
type Load = (name: string) => Promise<Loaded>;
/** Returns the answers to the question and to the thanks. */
type Program = (load: Load, baseURL: string) => Promise<readonly string[]>;

function aiSdk(
  open: (load: Load, baseURL: string) => Promise<Loaded>,
  how: "text" | "stream" | "agent",
): Program {
  return async (load, baseURL) => {
    const [{ generateText, streamText, isStepCount, ToolLoopAgent, tool }, { z }] = await Promise.all([
      load("ai"),
      load("zod"),
    ]);
    const model = await open(load, baseURL);
    const tools = {
      weather: tool({ description: NAMES, inputSchema: z.object({ city: z.string() }), execute: weather }),
      clock: tool({ description: "The time", inputSchema: z.object({}), execute: clock }),
    };
    const messages: Loaded[] = [];
    const said: string[] = [];
    for (const content of [QUESTION, THANKS]) {
      messages.push({ role: "user", content });
      const asked = { model, tools, messages, stopWhen: isStepCount(10), maxRetries: 0 };
      const result =
        how === "agent"
          ? await new ToolLoopAgent({ model, tools, maxRetries: 0 }).generate({ messages })
          : how === "stream"
            ? streamText(asked)
            : await generateText(asked);
      said.push(await result.text);
      messages.push(...((await result.responseMessages) ?? (await result.response).messages));
    }
    return said;
  };
}

const aiResponses = async (load: Load, baseURL: string) =>
  (await load("@ai-sdk/openai")).createOpenAI({ baseURL, apiKey: TOKEN })(MODEL);
const aiChat = async (load: Load, baseURL: string) =>
  (await load("@ai-sdk/openai")).createOpenAI({ baseURL, apiKey: TOKEN }).chat(MODEL);
const aiCompatible = async (load: Load, baseURL: string) =>
  (await load("@ai-sdk/openai-compatible")).createOpenAICompatible({
    name: "parley",
    baseURL,
    apiKey: TOKEN,
  })(MODEL);

function langChain(useResponsesApi: boolean, streaming: boolean): Program {
  return async (load, baseURL) => {
    const [{ ChatOpenAI }, { HumanMessage }, { tool }, { concat }, { z }] = await Promise.all(
      [
        "@langchain/openai",
        "@langchain/core/messages",
        "@langchain/core/tools",
        "@langchain/core/utils/stream",
        "zod",
      ].map(load),
    );
    const tools = [
      tool(weather, { name: "weather", description: NAMES, schema: z.object({ city: z.string() }) }),
      tool(clock, { name: "clock", description: "The time", schema: z.object({}) }),
    ];
    const options = {
      model: MODEL,
      apiKey: TOKEN,
      configuration: { baseURL },
      useResponsesApi,
      maxRetries: 0,
    };
    const model = new ChatOpenAI(options).bindTools(tools);
    const ask = async (messages: Loaded[]) => {
      if (!streaming) return model.invoke(messages);
      let whole: Loaded;
      for await (const chunk of await model.stream(messages))
        whole = whole === undefined ? chunk : concat(whole, chunk);
      return whole;
    };
    const messages: Loaded[] = [];
    const said: string[] = [];
    for (const content of [QUESTION, THANKS]) {
      messages.push(new HumanMessage(content));
      let answer = await ask(messages);
      for (messages.push(answer); answer.tool_calls.length > 0; messages.push(answer)) {
        for (const one of answer.tool_calls)
          messages.push(
            await tools.find(({ name }) => name === one.name).invoke({ ...one, type: "tool_call" }),
          );
        answer = await ask(messages);
      }
      said.push(answer.text);
    }
    return said;
  };
}

function openAiAgents(
  api: "responses" | "chat_completions",
  stream: boolean,
  continues: "previousResponseId" | "conversationId" | false,
): Program {
  return async (load, baseURL) => {
    const [{ Agent, tool, setTracingDisabled, OpenAIProvider, Runner }, { z }] = await Promise.all([
      load("@openai/agents"),
      load("zod"),
    ]);
    setTracingDisabled(true);
    const tools = [
      tool({
        name: "weather",
        description: NAMES,
        parameters: z.object({ city: z.string() }),
        execute: weather,
      }),
      tool({ name: "clock", description: "The time", parameters: z.object({}), execute: clock }),
    ];
    const modelProvider = new OpenAIProvider({ apiKey: TOKEN, baseURL, useResponses: api === "responses" });
    const runner = new Runner({ modelProvider, tracingDisabled: true });
    const agent = new Agent({ name: "Weather", instructions: "Be short.", model: MODEL, tools });
    let history: Loaded[] = [];
    const conversations = `${baseURL}/conversations`;
    const created = { method: "POST", headers: { authorization: `Bearer ${TOKEN}` } };
    const conversation =
      continues === "conversationId" ? await (await fetch(conversations, created)).json() : {};
    let previous: string | undefined = (conversation as Loaded).id;
    const said: string[] = [];
    for (const content of [QUESTION, THANKS]) {
      const input = continues ? content : [...history, { role: "user", content }];
      const result = await runner.run(agent, input, { stream, ...(continues && { [continues]: previous }) });
      if (stream) await result.completed;
      said.push(result.finalOutput);
      history = result.history;
      if (continues === "previousResponseId") previous = result.lastResponseId;
    }
    return said;
  };
}

function pi(api: "openai-completions" | "openai-responses"): Program {
  return async (_, baseUrl) => {
    const { streamSimple } = (await import(`@earendil-works/pi-ai/api/${api}`)) as Loaded;
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    const limits = { contextWindow: 100_000, maxTokens: 4_000, input: ["text"], reasoning: false };
    const model = { id: MODEL, name: MODEL, api, provider: "parley", baseUrl, cost, ...limits };
    const tools = [
      {
        name: "weather",
        description: NAMES,
        parameters: { type: "object", properties: { city: { type: "string" } } },
      },
      { name: "clock", description: "The time", parameters: { type: "object", properties: {} } },
    ];
    const messages: Loaded[] = [];
    const said: string[] = [];
    for (const content of [QUESTION, THANKS]) {
      messages.push({ role: "user", content, timestamp: 0 });
      for (;;) {
        const context = normalizeContext({ systemPrompt: "Be short.", messages, tools: tools as Loaded });
        const answer = await streamSimple(model, context, { apiKey: TOKEN, maxRetries: 0 }).result();
        if (answer.stopReason === "error") throw new Error(answer.errorMessage);
        messages.push(answer);
        const calls = answer.content.filter((block: Loaded) => block.type === "toolCall");
        if (calls.length === 0) {
          said.push(
            answer.content.map((block: Loaded) => (block.type === "text" ? block.text : "")).join(""),
          );
          break;
        }
        for (const one of calls) {
          const result = one.name === "weather" ? weather(one.arguments) : clock();
          const place = { toolCallId: one.id, toolName: one.name, isError: false, timestamp: 0 };
          messages.push({ role: "toolResult", content: [{ type: "text", text: result }], ...place });
        }
      }
    }
    return said;
  };
}

const PROGRAMS: Readonly<Record<string, Program>> = {
  "AI SDK, responses": aiSdk(aiResponses, "text"),
  "AI SDK, responses, streamed": aiSdk(aiResponses, "stream"),
  "AI SDK, responses, ToolLoopAgent": aiSdk(aiResponses, "agent"),
  "AI SDK, chat completions, streamed": aiSdk(aiChat, "stream"),
  "AI SDK, openai-compatible": aiSdk(aiCompatible, "text"),
  "AI SDK, openai-compatible, streamed": aiSdk(aiCompatible, "stream"),
  "LangChain, chat completions": langChain(false, false),
  "LangChain, chat completions, streamed": langChain(false, true),
  "LangChain, responses": langChain(true, false),
  "LangChain, responses, streamed": langChain(true, true),
  "OpenAI Agents, responses": openAiAgents("responses", false, false),
  "OpenAI Agents, responses, streamed": openAiAgents("responses", true, false),
  "OpenAI Agents, responses, previousResponseId": openAiAgents("responses", false, "previousResponseId"),
  "OpenAI Agents, responses, conversationId": openAiAgents("responses", true, "conversationId"),
  "OpenAI Agents, chat completions": openAiAgents("chat_completions", false, false),
  "OpenAI Agents, chat completions, streamed": openAiAgents("chat_completions", true, false),
  "pi, chat completions": pi("openai-completions"),
  "pi, responses": pi("openai-responses"),
};

const [given] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), "parley-openai-clients-"));
const folder = given === undefined ? join(home, "packages") : resolve(given);
const rows: string[] = [];
let failed = 0;
try {
  await install(folder, { dependencies: PACKAGES });
  const loader = join(folder, "load.mjs");
  writeFileSync(loader, "export const load = (name) => import(name);\n");
  const { load } = (await import(pathToFileURL(loader).href)) as { load: Load };
  const server = await startModelServer(script);
  const provider = server.provider("anthropic-messages");
  const settings = {
    models: { providers: { [provider.id]: { ...provider, id: undefined } } },
    agents: { defaults: { model: `${provider.id}/test-model` } },
  };
  mkdirSync(join(home, "gateway"));
  await withGateway(join(home, "gateway"), settings, async ({ httpUrl }) => {
    for (const [name, program] of Object.entries(PROGRAMS)) {
      const said = await program(load, `${httpUrl}/v1`).catch((error: unknown) => [String(error)]);
      const isRight = said.length === 2 && said[0]?.endsWith(ANSWER) === true && said[1] === WELCOME;
      if (!isRight) failed += 1;
      rows.push(`| ${name} | ${isRight ? "passes" : `FAILS: ${said.join(" / ")}`} |`);
    }
  });
  await server.close();
} finally {
  rmSync(home, { recursive: true, force: true });
}
const versions = Object.entries(PACKAGES).map(([name, version]) => `${name} ${version}`);
console.log([`| program (${versions.join(", ")}) | result |`, "|---|---|", ...rows].join("\n"));
process.exitCode = failed === 0 ? 0 : 1;
