// The parts of `npm run bench`, in the order of the table. Each part is one line here and one file.

import { appends } from "./appends.ts";
import { conversations } from "./conversations.ts";
import { fanOut, memory, recovery } from "./endurance.ts";
import { histories } from "./histories.ts";
import { idleMemory } from "./idle-memory.ts";
import { installSize } from "./install.ts";
import { lists } from "./lists.ts";
import type { Row } from "./measure.ts";
import { runOverhead } from "./overhead.ts";
import { promptCache } from "./prompt-cache.ts";
import { queuedLanes } from "./queued-lanes.ts";
import { replays } from "./replays.ts";
import { runs } from "./runs.ts";
import { searches } from "./searches.ts";
import { spawning } from "./spawning.ts";
import { startUp } from "./start.ts";
import { streaming } from "./streaming.ts";

/** Options of a part. */
export interface Wanted {
  /** Store sizes for figures that depend on the size. */
  readonly sizes: readonly number[];
}

type Part = (wanted: Wanted) => Promise<Row[]>;

export const PARTS: Readonly<Record<string, Part>> = {
  start: startUp,
  install: installSize,
  overhead: runOverhead,
  runs,
  conversations,
  spawns: spawning,
  replays,
  streaming,
  clients: fanOut,
  cache: promptCache,
  lanes: queuedLanes,
  recovery,
  memory,
  idle: () => idleMemory(),
  lists,
  search: searches,
  history: histories,
  appends,
};
