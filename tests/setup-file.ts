// Runs before each test file, also if several files share a process. Undoes the setup of each test
// afterwards.

import { afterEach } from "vitest";
import { cleanUp } from "./kit/cleanup.ts";

afterEach(cleanUp);
