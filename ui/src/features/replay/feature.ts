// Adds the pages that replay a chain, and compare it with another one.

import type { ChainPage } from "../../flow/actions.tsx";
import { lazy } from "../../parts/lazy.tsx";

export const REPLAY_PAGES: readonly ChainPage[] = [
  {
    name: "Replay",
    at: "replay",
    method: "chains.replay",
    stepName: "Replay from here",
    Page: lazy(async () => (await import("./replay.tsx")).Replay),
  },
  {
    name: "Compare",
    at: "compare",
    method: "chains.diff",
    Page: lazy(async () => (await import("./compare.tsx")).Compare),
  },
];
