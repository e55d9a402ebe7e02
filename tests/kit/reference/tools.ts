// docs/reference/TOOLS.md: every tool, generated from its schema.

import { typeWords } from "../../../src/config/schema/keys.ts";
import type { Schema } from "../../../src/config/schema/setting.ts";
import type { ToolEntry } from "../../../src/contract/tools/parts.ts";
import { TOOLS, type ToolName } from "../../../src/contract/tools.ts";
import { typeText } from "./answers.ts";
import { code, codes, GENERATED, link, linkedCodes, page, prose, table, wrapped } from "./markdown.ts";
import { type Field, fieldsOf } from "./schema.ts";

/** Codes that any tool may return. */
const EVERY_TOOL = ["invalid_argument", "unknown_argument", "unknown_tool", "tool_denied"];

const entries = (): [ToolName, ToolEntry][] => Object.entries(TOOLS) as [ToolName, ToolEntry][];

/** Returns every argument of every tool, so that a test finds those without a description. */
export function toolArguments(): { tool: string; field: Field }[] {
  return entries().flatMap(([tool, { params }]) =>
    fieldsOf(params as Schema).map((field) => ({ tool, field })),
  );
}

function section(name: string, entry: ToolEntry): string {
  const { description, params, result, errors, who, parallel, idempotent } = entry;
  const args = fieldsOf(params as Schema).map(({ path, schema, required }) => [
    required ? `**${code(path)}**` : code(path),
    typeWords(schema),
    schema.description ?? "",
  ]);
  const beside = parallel
    ? "in parallel with other calls of the same message"
    : "alone, in the order of the message";
  const again = idempotent ? "repeated" : "answered with `outcome_unknown`, because it can't be repeated";
  return page(
    `## ${name}`,
    prose(description),
    prose(`*Available to:* ${who} *Runs* ${beside}; after a crash a call without an answer is ${again}.`),
    args.length === 0 ? "No arguments." : table(["argument", "type", "meaning"], args),
    `Answer:\n\n\`\`\`ts\n${typeText(result as Schema)}\n\`\`\``,
    errors.length === 0 ? "" : wrapped("*Further codes:*", linkedCodes(errors), "."),
  ).trimEnd();
}

export function toolsPage(): string {
  return page(
    "# Tools",
    GENERATED,
    "The tools that agents call. The filters of `tools`, of an agent, of sub-agents and of the sandbox decide which of them\n" +
      "a session has ([POLICY.md](../POLICY.md)); `parley call tools.catalog` lists the tools of a session, with the reason for\n" +
      "each. Tools of outside MCP servers are named `mcp__<server>__<tool>` ([MCP.md](../MCP.md)).",
    'A result is one JSON object. `status: "error"` or `"forbidden"` come with `code`, `error` (the problem), `hint?`\n' +
      `(the remedy) and facts of the failure. The types and the other fields are in\n` +
      `[PROTOCOL.md](PROTOCOL.md#types). **Bold** arguments are required. Any tool may answer\n${codes(EVERY_TOOL)}.`,
    table(
      ["tool", "available to"],
      entries().map(([name, { who }]) => [link(name), who]),
    ),
    ...entries().map(([name, entry]) => section(name, entry)),
  );
}
