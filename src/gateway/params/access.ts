// Owns the params of the methods that explain: who may do what.

import { EXPLAINED } from "../../core/explanation.ts";
import { ADMIN, type MethodSpec, name, object } from "./shapes.ts";

export const accessParams = {
  "access.explain": {
    scope: ADMIN,
    params: object({ viewer: name, target: name, access: { enum: EXPLAINED } }, ["viewer", "target"]),
    ignored: [],
  },
} as const satisfies Record<string, MethodSpec>;
