// Successors for engines whose runs are followed by nothing.

import type { Successors } from "../../../src/engine/run/finish.ts";

export const NO_SUCCESSORS: Successors = {
  runEnded: async () => {},
  answerLost: async () => {},
  cancelBelow: async () => [],
  budgetUsedUp: async () => {},
};
