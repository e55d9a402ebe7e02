// Owns the params of the methods about the demo.

import { ADMIN, type MethodSpec, NOTHING } from "./shapes.ts";

export const DEMO_METHODS = {
  "demo.start": {
    scope: ADMIN,
    does: "Starts a second gateway in this process, with three agents, a temporary store and no model.",
    params: NOTHING,
    ignored: [],
    fails: ["unknown_method"],
  },
  "demo.stop": {
    scope: ADMIN,
    does: "Stops the demo; otherwise it stops five minutes after its last connection.",
    params: NOTHING,
    ignored: [],
    fails: ["unknown_method"],
  },
} as const satisfies Record<string, MethodSpec>;
