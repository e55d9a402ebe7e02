// Adds replays, comparisons and evaluations of recorded chains.

import { feature, type LoadedBy } from "../../feature.ts";
import { REPLAY_EVENT, REPLAY_METHODS } from "./contract.ts";

export const replay = feature({
  name: "replay",
  methods: REPLAY_METHODS,
  handlers: async (): LoadedBy<"handlers"> => (await import("./methods.ts")).replayMethods,
  events: { replay: REPLAY_EVENT },
  commands: async (): LoadedBy<"commands"> => (await import("./rows.ts")).REPLAY,
});
