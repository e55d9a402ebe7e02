// Defines the methods that explain access.

import { EXPLAINED, type Explanation } from "../../core/shapes/explanation.ts";
import { type AgentToAgentSettings, VISIBILITY_MODES } from "../../core/shapes/settings/settings.ts";
import { about, declared, flag, list, object, oneOf, text } from "../schema.ts";
import { ADMIN, type MethodSpec, name } from "./parts.ts";

const SESSION_FIELDS = { key: text(), exists: flag() };
const SESSION_OPTIONS = { agentId: text(), archived: oneOf(true) };
const mode = oneOf(...VISIBILITY_MODES);

export const ACCESS_METHODS = {
  "access.explain": {
    scope: ADMIN,
    summary: "Explains whether one session may access another, with the rule and the settings that decide.",
    params: object(
      {
        viewer: about(name, "Session that wants access. It must exist."),
        target: about(name, "Session to access. It does not have to exist."),
      },
      { access: about(oneOf(...EXPLAINED), "Kind of access. Default: all six kinds.") },
    ),
    result: object({
      viewer: object({ ...SESSION_FIELDS, sandboxed: flag() }, SESSION_OPTIONS),
      target: object(SESSION_FIELDS, SESSION_OPTIONS),
      visibility: about(
        object({ configured: mode, effective: mode }),
        "Value of `tools.sessions.visibility`, and its effective value for the viewer.",
      ),
      agentToAgent: declared<AgentToAgentSettings>("AgentToAgentSettings"),
      answers: list(declared<Explanation>("Explanation")),
    }),
    errors: ["invalid_session_key", "not_visible", "session_not_found"],
  },
} as const satisfies Record<string, MethodSpec>;
