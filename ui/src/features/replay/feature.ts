// Adds the dialogs that replay a chain, and compare it with another one.

import type { ChainDialog } from "../../flow/actions.tsx";
import { lazy } from "../../parts/lazy.tsx";

export const REPLAY_DIALOGS: readonly ChainDialog[] = [
  {
    name: "Replay",
    method: "chains.replay",
    Dialog: lazy(async () => (await import("./replay.tsx")).Replay),
  },
  {
    name: "Compare",
    method: "chains.diff",
    Dialog: lazy(async () => (await import("./compare.tsx")).Compare),
  },
];
