// Reads the tools of a request, which the client runs itself. Pure.

import { isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import type { ClientTools } from "../../core/shapes/run.ts";
import { isNothing } from "./fields.ts";
import { schemaIn, wrong } from "./format.ts";

const TOOLS_MAX = 128;
const NAME = /^[\w-]{1,64}$/;
/** Maximum size of all tools together, because they are stored with the run. */
const TOOLS_CHARS_MAX = 256 * 1024;

type Fields = Readonly<Record<string, unknown>>;
type Tool = ClientTools["list"][number];

function toolOf(given: unknown, param: string): Result<Tool> {
  if (!isObject(given)) return wrong(param, "must be an object");
  if (given.type !== "function")
    return wrong(`${param}.type`, "must be function: an agent has its own tools for the web, files and code");
  // Chat completions nest the fields.
  const at = given.function === undefined ? param : `${param}.function`;
  const fields = given.function ?? given;
  if (!isObject(fields)) return wrong(at, "must be an object with name and parameters");
  const { name, description, strict } = fields;
  if (typeof name !== "string" || !NAME.test(name))
    return wrong(`${at}.name`, "must have 1 to 64 letters, digits, underscores or hyphens");
  if (description != null && typeof description !== "string")
    return wrong(`${at}.description`, "must be a string");
  if (strict != null && typeof strict !== "boolean") return wrong(`${at}.strict`, "must be true or false");
  const parameters = schemaIn(fields.parameters ?? { type: "object", properties: {} }, `${at}.parameters`);
  if (!parameters.ok) return parameters;
  return ok({ name, parameters: parameters.value, ...optional({ description: description ?? undefined }) });
}

function toolsIn(value: unknown): Result<Tool[]> {
  if (isNothing(value)) return ok([]);
  if (!Array.isArray(value) || value.length > TOOLS_MAX)
    return wrong("tools", `must be a list of at most ${TOOLS_MAX} tools`);
  const tools: Tool[] = [];
  for (const [index, one] of value.entries()) {
    const tool = toolOf(one, `tools[${index}]`);
    if (!tool.ok) return tool;
    if (tools.some(({ name }) => name === tool.value.name))
      return wrong(`tools[${index}]`, `has the same name as an earlier tool: ${tool.value.name}`);
    tools.push(tool.value);
  }
  if (JSON.stringify(tools).length > TOOLS_CHARS_MAX)
    return wrong("tools", `are too large: together they have at most ${TOOLS_CHARS_MAX} characters`);
  return ok(tools);
}

/** Returns the tools that a choice allows, and which of them the model must call. */
function choiceOf(
  value: unknown,
  tools: readonly Tool[],
): Result<Pick<ClientTools, "list" | "must" | "none">> {
  if (value == null || value === "auto") return ok({ list: tools });
  if (value === "none") return ok({ list: tools, none: true });
  const findTool = (name: unknown): Tool | undefined => tools.find((tool) => tool.name === name);
  if (value === "required" && tools.length > 0) return ok({ list: tools, must: true });
  if (isObject(value) && value.type === "function") {
    const tool = findTool(isObject(value.function) ? value.function.name : value.name);
    if (tool !== undefined) return ok({ list: tools, must: tool.name });
  }
  if (isObject(value) && value.type === "allowed_tools") {
    const { mode, tools: allowed } = isObject(value.allowed_tools) ? value.allowed_tools : value;
    const list = Array.isArray(allowed)
      ? allowed.map((one) =>
          findTool(isObject(one) ? (isObject(one.function) ? one.function : one).name : ""),
        )
      : [];
    const known = list.filter((tool) => tool !== undefined);
    if (known.length > 0 && known.length === list.length)
      return ok({ list: known, ...(mode === "required" ? { must: true } : {}) });
  }
  return wrong("tool_choice", "must be none, auto, required, or name functions of tools");
}

/** Returns the client's tools of a body of either API, or undefined if the run gets none. */
export function clientToolsIn(body: Fields): Result<ClientTools | undefined> {
  const tools = toolsIn(body.tools);
  if (!tools.ok) return tools;
  const { parallel_tool_calls: parallel } = body;
  if (parallel != null && typeof parallel !== "boolean")
    return wrong("parallel_tool_calls", "must be true or false");
  const choice = choiceOf(body.tool_choice, tools.value);
  if (!choice.ok) return choice;
  if (choice.value.list.length === 0) return ok(undefined);
  return ok({ ...choice.value, ...(parallel === false ? { oneByOne: true } : {}) });
}
