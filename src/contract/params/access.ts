// Owns the params of the methods that explain access.

import { EXPLAINED } from "../../core/shapes/explanation.ts";
import { ADMIN, about, type MethodSpec, name, object } from "./shapes.ts";

export const ACCESS_METHODS = {
  "access.explain": {
    scope: ADMIN,
    does: "Explains whether one session may act on another, by which rule and which settings.",
    params: object(
      {
        viewer: about(name, "The acting session; it must exist."),
        target: about(name, "The target session; it need not exist."),
        access: about({ enum: EXPLAINED }, "What. Default: all six."),
      },
      ["viewer", "target"],
    ),
    ignored: [],
    fails: ["invalid_session_key", "not_visible", "session_not_found"],
  },
} as const satisfies Record<string, MethodSpec>;
