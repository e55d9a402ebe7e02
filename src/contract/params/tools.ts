// Owns the params of the methods about tools and about agents' permission requests.

import {
  ADMIN,
  about,
  anyObject,
  idempotencyKey,
  type MethodSpec,
  NAMES_SESSION,
  NOTHING,
  name,
  object,
  READ,
} from "./shapes.ts";

const whose = about(name, "The session. Default: the default agent's main session.");

export const TOOL_METHODS = {
  "tools.catalog": {
    scope: READ,
    does: "Lists a session's tools with their schemas, and the withheld ones with the deciding setting.",
    params: object({ sessionKey: whose }, []),
    ignored: ["agentId", "includePlugins"],
    fails: NAMES_SESSION,
  },
  "tools.invoke": {
    scope: ADMIN,
    does: "Calls a tool as a session. The payload is the tool's result, errors included.",
    params: object(
      {
        name: about(name, "Which tool."),
        arguments: about(anyObject, "Its arguments."),
        args: about(anyObject, "Another spelling of `arguments`."),
        sessionKey: whose,
        idempotencyKey,
      },
      ["name"],
    ),
    ignored: ["agentId", "confirm"],
    fails: [...NAMES_SESSION, "agent_not_found", "sandbox_unavailable", "run_aborted"],
  },
  "permissions.list": {
    scope: READ,
    does: "Lists open permission requests of ACP agents at this gateway.",
    params: NOTHING,
    ignored: [],
  },
  "permissions.answer": {
    scope: ADMIN,
    does: "Answers a permission request.",
    params: object(
      {
        id: about(name, "Which question."),
        decision: about({ enum: ["allow", "deny"] }, "The decision, for this request only."),
        idempotencyKey,
      },
      ["id", "decision"],
    ),
    ignored: [],
    fails: ["permission_not_found"],
  },
} as const satisfies Record<string, MethodSpec>;
