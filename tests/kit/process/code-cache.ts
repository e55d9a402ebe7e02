// Names the folder in which Node's programs share compiled code.

import { tmpdir } from "node:os";
import { join } from "node:path";

/** The folder is kept from one test run to the next. */
export const CODE_CACHE = join(tmpdir(), "node-compile-cache");
