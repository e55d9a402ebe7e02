// Owns the methods about the page's demo: start it, stop it.

import { seesEverything } from "../../access/token.ts";
import { fail, ok } from "../../core/shapes/errors.ts";
import type { BasicDeps, Methods } from "../call.ts";
import type { Demo } from "../demo.ts";

export interface DemoDeps extends BasicDeps {
  /** Absent if demos are unavailable. */
  readonly demo?: Pick<Demo, "start" | "stop">;
}

const NONE = fail("unknown_method", "this gateway offers no demo");

const SOME_SESSIONS = fail("missing_scope", "the demo needs a token that covers every session", {
  hint: "Use the gateway's own token.",
});

export const demoMethods: Methods<"demo.start" | "demo.stop", DemoDeps> = {
  "demo.start": {
    handle: async ({ deps, caller }) =>
      seesEverything(caller) ? ((await deps.demo?.start()) ?? NONE) : SOME_SESSIONS,
  },
  "demo.stop": {
    async handle({ deps, caller }) {
      if (!seesEverything(caller)) return SOME_SESSIONS;
      const stopped = await deps.demo?.stop();
      return stopped === undefined ? NONE : ok({ ok: true, stopped });
    },
  },
};
