// Offers the resources and prompts of an MCP server as tools: as entries of its tool list, and with answers
// in the form of a tool's answer, so that all rules and limits of tools apply to them.
// - Only the prompts are named in a description. Resources are listed when a model asks, so they are current.
// - The lists are untrusted: each entry is put on one line and cut.

import { fieldsOf, isObject, listOf, textOf } from "../../core/json.ts";
import { plainLine } from "./plain-text.ts";

const URI_MAX_CHARS = 2_000;
const NAME_MAX_CHARS = 256;
const WORDS_MAX_CHARS = 300;
const ARGUMENTS_MAX = 20;
/** Leaves room in the description of a tool for the number of prompts that are not named. */
const PROMPTS_MAX_CHARS = 1_900;

/** The request that answers a call of such a tool. */
export type AddedMethod = "resources/list" | "resources/read" | "prompts/get";

/** A tool in the form of an entry of the server's list. */
export interface AddedTool {
  readonly name: string;
  readonly method: AddedMethod;
  readonly description: string;
  readonly inputSchema: object;
  readonly annotations: { readonly readOnlyHint: true };
}

/** The lists that a server answers page by page, and the field of an answer that has the entries. */
export const LISTS = {
  "tools/list": "tools",
  "prompts/list": "prompts",
  "resources/list": "resources",
  "resources/templates/list": "resourceTemplates",
} as const;

/** Sends requests to the server. */
export interface Asking {
  /** Returns the entries of a list, and whether these are all. */
  list(
    method: keyof typeof LISTS,
  ): Promise<{ readonly entries: readonly unknown[]; readonly isWhole: boolean }>;
  /** Returns a field of the answer. */
  ask(method: AddedMethod, params: object, field: "contents" | "messages"): Promise<unknown>;
}

type Answer = Readonly<Record<string, unknown>>;

const text = (words: string) => ({ type: "text", text: words });
const refusal = (words: string): Answer => ({ isError: true, content: [text(words)] });

/** Joins the words that are there: "name: description". */
function describeEntry({ name, title, description }: Answer): string {
  const words = [title ?? name, description].filter((word) => textOf(word) !== undefined);
  return plainLine(words.join(": "), WORDS_MAX_CHARS);
}

function promptLine(prompt: Answer): string {
  const given = listOf(prompt.arguments).filter(isObject).slice(0, ARGUMENTS_MAX);
  const named = given.map(({ name, required, description }) => {
    const about =
      textOf(description) === undefined ? "" : `: ${plainLine(String(description), WORDS_MAX_CHARS)}`;
    return `${plainLine(String(name), NAME_MAX_CHARS)}${required === true ? "" : "?"}${about}`;
  });
  const name = plainLine(String(prompt.name), NAME_MAX_CHARS);
  return `- ${name}(${named.join("; ")}) ${describeEntry(prompt)}`.trim();
}

function describePrompts(prompts: readonly Answer[]): string {
  const lines = prompts.map(promptLine);
  let chars = 0;
  const fit = lines.filter((line) => {
    chars += line.length + 1;
    return chars <= PROMPTS_MAX_CHARS;
  });
  const left = lines.length - fit.length;
  return [...fit, ...(left === 0 ? [] : [`and ${left} more`])].join("\n");
}

/** Returns the tools for what a server announces. `prompts`: the entries of its list. */
export function addedTools(capabilities: unknown, prompts: readonly unknown[]): AddedTool[] {
  const announced = fieldsOf(capabilities);
  const annotations = { readOnlyHint: true } as const;
  const string = (description: string) => ({ type: "string", description });
  const added: AddedTool[] = [];
  if (announced.resources !== undefined)
    added.push(
      {
        name: "list_resources",
        method: "resources/list",
        description: "Lists the server's resources by URI, and templates of URIs.",
        inputSchema: {
          type: "object",
          properties: { contains: string("Lists only entries with this text.") },
        },
        annotations,
      },
      {
        name: "read_resource",
        method: "resources/read",
        description: "Reads a resource of the server.",
        inputSchema: {
          type: "object",
          properties: { uri: string("Its URI, or a template's with all {parts} filled in.") },
          required: ["uri"],
        },
        annotations,
      },
    );
  if (announced.prompts !== undefined)
    added.push({
      name: "get_prompt",
      method: "prompts/get",
      description: [
        'Returns a prompt of the server as text. Prompts, with arguments ("?": optional):',
        describePrompts(prompts.filter(isObject)),
      ].join("\n"),
      inputSchema: {
        type: "object",
        properties: {
          name: string("Name of the prompt."),
          arguments: { type: "object", description: "Its arguments by name, each a text." },
        },
        required: ["name"],
      },
      annotations,
    });
  return added;
}

async function listResources({ contains }: Answer, { list }: Asking): Promise<Answer> {
  const wanted = textOf(contains)?.toLowerCase() ?? "";
  const templates = await list("resources/templates/list");
  const resources = await list("resources/list");
  const linesOf = (entries: readonly unknown[], field: "uri" | "uriTemplate") =>
    entries
      .filter(isObject)
      .map((one) => `${plainLine(String(one[field]), URI_MAX_CHARS)} ${describeEntry(one)}`.trim())
      .filter((line) => line.toLowerCase().includes(wanted));
  const lines = linesOf(resources.entries, "uri");
  const patterns = linesOf(templates.entries, "uriTemplate");
  const parts = [
    ...(patterns.length === 0 ? [] : [`${patterns.length} templates:`, ...patterns]),
    `${lines.length} resources:`,
    ...lines,
    ...(resources.isWhole && templates.isWhole ? [] : ["The server has more, which were not read."]),
  ];
  return { content: [text(parts.join("\n"))] };
}

/** Answers a call of an added tool. */
export async function answerAdded(method: AddedMethod, args: Answer, asking: Asking): Promise<Answer> {
  switch (method) {
    case "resources/list":
      return listResources(args, asking);
    case "resources/read": {
      const uri = textOf(args.uri);
      if (uri === undefined) return refusal("uri is missing: give the URI of a resource");
      const contents = listOf(await asking.ask(method, { uri }, "contents"));
      if (contents.length === 0) return refusal("the server returned no contents for this uri");
      return { content: contents.map((resource) => ({ type: "resource", resource })) };
    }
    case "prompts/get": {
      const name = textOf(args.name);
      if (name === undefined) return refusal("name is missing: give the name of a prompt");
      if (args.arguments !== undefined && !isObject(args.arguments))
        return refusal('arguments is not an object such as {"city": "Rome"}');
      // The protocol has only texts here; models also give numbers.
      const given = Object.entries(fieldsOf(args.arguments)).map(([key, value]) => [
        key,
        typeof value === "string" ? value : JSON.stringify(value),
      ]);
      const messages = listOf(
        await asking.ask(method, { name, arguments: Object.fromEntries(given) as object }, "messages"),
      );
      if (messages.length === 0) return refusal("the server returned a prompt without messages");
      return {
        content: messages.flatMap((message) => {
          const { role, content } = fieldsOf(message);
          return [text(role === "assistant" ? "[assistant]" : "[user]"), content];
        }),
      };
    }
  }
}
