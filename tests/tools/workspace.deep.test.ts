// Files that are replaced between the check of a path and its use, many times.

import { swapRace } from "./swap-race.ts";

swapRace(3_000);
