// docs/reference/TOOLS.md: every tool, as its schema has it.

import { toolSpecs } from "../../../src/tools/catalog.ts";
import { code, codes, GENERATED, link, linkedCodes, page, prose, table, wrapped } from "./markdown.ts";
import { type Field, fieldsOf, type Schema, typeWords } from "./schema.ts";
import { EVERY_TOOL, TOOL_ANSWERS } from "./tool-answers.ts";

/** Every argument of every tool, for a test to find those that say nothing of themselves. */
export function toolArguments(): { tool: string; field: Field }[] {
  return toolSpecs().flatMap(({ name: tool, parameters }) =>
    fieldsOf(parameters as Schema).map((field) => ({ tool, field })),
  );
}

function section({
  name,
  description,
  parameters,
  parallel,
  idempotent,
}: ReturnType<typeof toolSpecs>[number]) {
  const args = fieldsOf(parameters as Schema).map(({ path, schema, required }) => [
    required ? `**${code(path)}**` : code(path),
    typeWords(schema),
    schema.description ?? "",
  ]);
  const { gives = [], codes: own = [], who = "" } = TOOL_ANSWERS[name] ?? {};
  const beside = parallel ? "beside other calls of the same message" : "alone, in the order of the message";
  const again = idempotent ? "made again" : "answered `outcome_unknown`, for it can't be made twice";
  return page(
    `## ${name}`,
    prose(description),
    prose(`*Who has it:* ${who} *Runs* ${beside}; after a crash a call without an answer is ${again}.`),
    args.length === 0 ? "No arguments." : table(["argument", "type", "meaning"], args),
    table(
      ["answer", "what it says"],
      gives.map(([what, meaning]) => [what, meaning]),
    ),
    own.length === 0 ? "" : wrapped("*Codes besides:*", linkedCodes(own), "."),
  ).trimEnd();
}

export function toolsPage(): string {
  const specs = toolSpecs();
  return page(
    "# Tools",
    GENERATED,
    "What an agent can call. Which of them a session has, the filters of `tools`, of its agent, of sub-agents and of the\n" +
      "sandbox decide ([POLICY.md](../POLICY.md)); `parley call tools.catalog` tells it of a session, with the reason for each.\n" +
      "Tools of outside MCP servers come besides, as `mcp__<server>__<tool>` ([MCP.md](../MCP.md)).",
    'A result is one JSON object. `status: "error"` or `"forbidden"` come with `code`, `error` (what was wrong), `hint?`\n' +
      `(what to do) and facts of the failure. **Bold** arguments are required. Any tool may answer\n${codes(EVERY_TOOL)}.`,
    table(
      ["tool", "who has it"],
      specs.map(({ name }) => [link(name), TOOL_ANSWERS[name]?.who ?? ""]),
    ),
    ...specs.map(section),
  );
}
