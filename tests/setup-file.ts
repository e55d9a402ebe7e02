// Runs before each test file, even if several files share a process. Afterwards it undoes the setup of each
// test and of the file.

import { enableCompileCache } from "node:module";
import { afterAll, afterEach } from "vitest";
import { cleanUp, cleanUpFile } from "./kit/cleanup.ts";
import { CODE_CACHE } from "./kit/process/code-cache.ts";

// Workers start from the sources here. With compiled code they take a third of the time. The variable is for
// workers that inherit the environment.
enableCompileCache(CODE_CACHE);
process.env.NODE_COMPILE_CACHE = CODE_CACHE;

afterEach(cleanUp);
afterAll(cleanUpFile);
