// Owns the params of the methods that explain: who may do what, and how the ways out stand.

import { EXPLAINED } from "../../core/explanation.ts";
import { ADMIN, type MethodSpec, NOTHING, name, object, READ } from "./shapes.ts";

export const accessParams = {
  "access.explain": {
    scope: ADMIN,
    params: object({ viewer: name, target: name, access: { enum: EXPLAINED } }, ["viewer", "target"]),
    ignored: [],
  },
  "channels.status": { scope: READ, params: NOTHING, ignored: [] },
} as const satisfies Record<string, MethodSpec>;
