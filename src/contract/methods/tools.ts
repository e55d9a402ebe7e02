// Defines the methods for tools, and for permission requests of agents.

import {
  type InstructionChange,
  PERMISSION_SCOPES,
  type PermissionQuestion,
  type PermissionRule,
} from "../../core/shapes/permission.ts";
import { about, anyObject, anything, declared, list, mapOf, named, object, oneOf, text } from "../schema.ts";
import { ADMIN, idempotencyKey, type MethodSpec, NAMES_SESSION, NOTHING, name, READ } from "./parts.ts";

const whose = about(name, "Session that has the tools. Default: the default agent's main session.");

const TOOL = named(
  "ToolRow",
  "A tool that the session has.",
  object({
    name: text(),
    description: text(),
    parameters: anyObject,
    reason: text("Reason why the session has the tool, with the name of the setting."),
  }),
);

export const TOOL_METHODS = {
  "tools.catalog": {
    scope: READ,
    summary:
      "Lists a session's tools with their schemas, and the withheld tools with the setting that decides.",
    params: object({}, { sessionKey: whose }),
    result: object({
      sessionKey: text(),
      tools: list(TOOL),
      withheld: list(
        object({ name: text(), reason: text() }),
        "Withheld tools. `mcp__<server>__*` means all tools of a server.",
      ),
      missing: list(object({ server: text(), why: text() }), "MCP servers whose tools could not be listed."),
    }),
    ignored: ["agentId", "includePlugins"],
    errors: NAMES_SESSION,
  },
  "tools.invoke": {
    scope: ADMIN,
    takesLong: true,
    summary: "Calls a tool as a session. Returns the result of the tool, which may be an error.",
    params: object(
      { name: about(name, "Name of the tool.") },
      {
        arguments: about(anyObject, "Arguments of the tool."),
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
    summary:
      "Lists the open permission requests of agents, and changed instruction files that wait. Callers who " +
      "may not answer see redacted requests.",
    params: NOTHING,
    result: object({
      permissions: list(declared<PermissionQuestion>("PermissionQuestion")),
      instructions: list(
        declared<InstructionChange>("InstructionChange"),
        "Changes of instruction files, skills and memories by runs with outside content. Only for tokens " +
          "with `operator.admin` for every session.",
      ),
    }),
  },
  "permissions.answer": {
    scope: ADMIN,
    part: "operator.approvals",
    summary: "Answers a permission request, or a change of an instruction file.",
    params: object(
      {
        id: about(name, "Id of the permission request or the change, or its first 4 or more characters."),
        decision: about(
          oneOf("allow", "deny"),
          "Answer to the request. For a change: `allow` makes the new text count, `deny` restores the file.",
        ),
      },
      {
        scope: about(
          oneOf(...PERMISSION_SCOPES),
          "How long a permission lasts: for this request, for the same kind of call in this chain, for the " +
            "same command in this session, or for the same of this agent. The request " +
            "has the possible scopes. Default: once.",
        ),
        content: about(
          mapOf(anything),
          "Values of the fields, by name, if the request has a form. A missing field gets its default; " +
            "null: no value.",
        ),
        idempotencyKey,
      },
    ),
    result: object(
      {
        ok: oneOf(true),
        id: text(),
        decision: oneOf("allow", "deny"),
        scope: oneOf(...PERMISSION_SCOPES),
      },
      { ruleId: text("Id of the rule that was made. `permissions.forget` deletes it.") },
    ),
    errors: ["permission_not_found", "missing_scope", "too_large", "file_problem", "path_outside"],
  },
  "permissions.rules": {
    scope: READ,
    summary: "Lists the commands that are allowed for longer than once.",
    params: NOTHING,
    result: object({ rules: list(declared<PermissionRule>("PermissionRule"), "Newest first.") }),
  },
  "permissions.forget": {
    scope: ADMIN,
    summary: "Deletes such a rule. The next call of its command asks again.",
    params: object(
      { id: about(name, "Id of the rule, or its first 4 or more characters.") },
      { idempotencyKey },
    ),
    result: object({ ok: oneOf(true), id: text() }),
    errors: ["permission_not_found"],
  },
} as const satisfies Record<string, MethodSpec>;
