// Owns the params of the methods about the demo.

import { ADMIN, type MethodSpec, NOTHING } from "./shapes.ts";

export const DEMO_METHODS = {
  "demo.start": { scope: ADMIN, params: NOTHING, ignored: [] },
  "demo.stop": { scope: ADMIN, params: NOTHING, ignored: [] },
} as const satisfies Record<string, MethodSpec>;
