// Owns the methods about the page's demo: start it, stop it.

import { fail, ok } from "../../core/shapes/errors.ts";
import type { BasicDeps, Methods } from "../call.ts";
import type { Demo } from "../demo.ts";

export interface DemoDeps extends BasicDeps {
  /** Absent if demos are unavailable. */
  readonly demo?: Pick<Demo, "start" | "stop">;
}

const NONE = fail("unknown_method", "this gateway offers no demo");

export const demoMethods: Methods<"demo.start" | "demo.stop", DemoDeps> = {
  "demo.start": {
    handle: async ({ deps }) => (await deps.demo?.start()) ?? NONE,
  },
  "demo.stop": {
    async handle({ deps }) {
      const stopped = await deps.demo?.stop();
      return stopped === undefined ? NONE : ok({ ok: true, stopped });
    },
  },
};
