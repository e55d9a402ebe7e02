// Owns the methods about the page's demo: start it, stop it.

import { fail, ok } from "../../core/shapes/errors.ts";
import type { Methods } from "../call.ts";
import { seesEverything } from "../covered.ts";

const NONE = fail("unknown_method", "this gateway offers no demo");

const SOME_SESSIONS = fail("missing_scope", "the demo needs a token that covers every session", {
  hint: "Use the gateway's own token.",
});

export const demoMethods: Methods<"demo.start" | "demo.stop"> = {
  "demo.start": {
    handle: async ({ state, caller }) =>
      seesEverything(caller) ? ((await state.demo?.start()) ?? NONE) : SOME_SESSIONS,
  },
  "demo.stop": {
    async handle({ state, caller }) {
      if (!seesEverything(caller)) return SOME_SESSIONS;
      const stopped = await state.demo?.stop();
      return stopped === undefined ? NONE : ok({ ok: true, stopped });
    },
  },
};
