// Files that are replaced between the check of a path and its use, many more times than in workspace.test.ts.

import { swapRace } from "./swap-race.ts";

swapRace(3_000);
