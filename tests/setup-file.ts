// Runs before each test file, also if several files share a process. Undoes the setup of each test,
// and of the file, afterwards.

import { afterAll, afterEach } from "vitest";
import { cleanUp, cleanUpFile } from "./kit/cleanup.ts";

afterEach(cleanUp);
afterAll(cleanUpFile);
