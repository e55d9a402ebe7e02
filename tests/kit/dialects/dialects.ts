// Lists all dialects.

import type { Dialect } from "./dialect.ts";
import { HOSTED } from "./hosted.ts";
import { LOCAL } from "./local.ts";
import { MAKERS } from "./makers.ts";

export const DIALECTS: readonly Dialect[] = [...MAKERS, ...HOSTED, ...LOCAL];
