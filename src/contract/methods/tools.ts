// Owns the methods about tools and about agents' permission requests.

import type { PermissionQuestion } from "../../core/shapes/permission.ts";
import { about, anyObject, anything, declared, list, mapOf, named, object, oneOf, text } from "../schema.ts";
import { ADMIN, idempotencyKey, type MethodSpec, NAMES_SESSION, NOTHING, name, READ } from "./parts.ts";

const whose = about(name, "The session. Default: the default agent's main session.");

const TOOL = named(
  "ToolRow",
  "A tool that the session has.",
  object({
    name: text(),
    description: text(),
    parameters: anyObject,
    reason: text("Why the session has it, with the setting's name."),
  }),
);

export const TOOL_METHODS = {
  "tools.catalog": {
    scope: READ,
    summary: "Lists a session's tools with their schemas, and the withheld ones with the deciding setting.",
    params: object({}, { sessionKey: whose }),
    result: object({
      sessionKey: text(),
      tools: list(TOOL),
      withheld: list(
        object({ name: text(), reason: text() }),
        "`mcp__<server>__*`: all tools of that server.",
      ),
      missing: list(object({ server: text(), why: text() }), "MCP servers whose tools could not be listed."),
    }),
    ignored: ["agentId", "includePlugins"],
    errors: NAMES_SESSION,
  },
  "tools.invoke": {
    scope: ADMIN,
    summary: "Calls a tool as a session. The payload is the tool's result, errors included.",
    params: object(
      { name: about(name, "Name of the tool.") },
      {
        arguments: about(anyObject, "Its arguments."),
        args: about(anyObject, "Another spelling of `arguments`."),
        sessionKey: whose,
        idempotencyKey,
      },
    ),
    result: mapOf(anything),
    ignored: ["agentId", "confirm"],
    errors: [...NAMES_SESSION, "agent_not_found", "sandbox_unavailable", "run_aborted"],
  },
  "permissions.list": {
    scope: READ,
    summary: "Lists open permission requests of ACP agents at this gateway.",
    params: NOTHING,
    result: object({ permissions: list(declared<PermissionQuestion>("PermissionQuestion")) }),
  },
  "permissions.answer": {
    scope: ADMIN,
    summary: "Answers a permission request.",
    params: object(
      {
        id: about(name, "Id of the permission request."),
        decision: about(oneOf("allow", "deny"), "The decision, for this request only."),
      },
      { idempotencyKey },
    ),
    result: object({ ok: oneOf(true), id: text(), decision: oneOf("allow", "deny") }),
    errors: ["permission_not_found"],
  },
} as const satisfies Record<string, MethodSpec>;
