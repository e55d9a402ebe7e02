// Owns the methods that explain access.

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
    summary: "Explains whether one session may act on another, by which rule and which settings.",
    params: object(
      {
        viewer: about(name, "The acting session; it must exist."),
        target: about(name, "The target session; it need not exist."),
      },
      { access: about(oneOf(...EXPLAINED), "The kind of access. Default: all six.") },
    ),
    result: object({
      viewer: object({ ...SESSION_FIELDS, sandboxed: flag() }, SESSION_OPTIONS),
      target: object(SESSION_FIELDS, SESSION_OPTIONS),
      visibility: about(
        object({ configured: mode, effective: mode }),
        "`tools.sessions.visibility`, and its effective value for the viewer.",
      ),
      agentToAgent: declared<AgentToAgentSettings>("AgentToAgentSettings"),
      answers: list(declared<Explanation>("Explanation")),
    }),
    errors: ["invalid_session_key", "not_visible", "session_not_found"],
  },
} as const satisfies Record<string, MethodSpec>;
