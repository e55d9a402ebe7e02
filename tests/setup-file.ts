// Runs before each test file, even if several files share a process. Afterwards it undoes the setup of each
// test and of the file.

import { afterAll, afterEach } from "vitest";
import { cleanUp, cleanUpFile } from "./kit/cleanup.ts";

afterEach(cleanUp);
afterAll(cleanUpFile);
