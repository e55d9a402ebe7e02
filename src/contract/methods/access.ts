// Owns the methods that explain access.

import { EXPLAINED } from "../../core/shapes/explanation.ts";
import { about, object, oneOf } from "../schema.ts";
import { ADMIN, type MethodSpec, name } from "./parts.ts";

export const ACCESS_METHODS = {
  "access.explain": {
    scope: ADMIN,
    summary: "Explains whether one session may act on another, by which rule and which settings.",
    params: object(
      {
        viewer: about(name, "The acting session; it must exist."),
        target: about(name, "The target session; it need not exist."),
      },
      { access: about(oneOf(...EXPLAINED), "What. Default: all six.") },
    ),
    errors: ["invalid_session_key", "not_visible", "session_not_found"],
  },
} as const satisfies Record<string, MethodSpec>;
