// Files that are swapped between the check of a path and its use, many times.

import { swapRace } from "./swap-race.ts";

swapRace(3_000);
