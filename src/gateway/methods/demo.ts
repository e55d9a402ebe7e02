// Owns the methods about the demo that a page shows: begin it, end it.

import { fail, ok } from "../../core/errors.ts";
import type { Methods } from "../call.ts";

const NONE = fail("unknown_method", "this gateway has no demo to show");

export const demoMethods: Methods<"demo.start" | "demo.stop"> = {
  "demo.start": {
    handle: async ({ state }) => (await state.demo?.start()) ?? NONE,
  },
  "demo.stop": {
    async handle({ state }) {
      const stopped = await state.demo?.stop();
      return stopped === undefined ? NONE : ok({ ok: true, stopped });
    },
  },
};
