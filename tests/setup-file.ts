// Runs before each test file, also where several files share a process: what a test opened is undone after it.

import { afterEach } from "vitest";
import { cleanUp } from "./kit/cleanup.ts";

afterEach(cleanUp);
