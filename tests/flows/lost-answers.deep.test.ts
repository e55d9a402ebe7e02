// Loses answers to commits of PostgreSQL. Slow, because each case creates its own schema.

import { lostAnswersContract } from "./lost-answers.ts";

lostAnswersContract("postgres");
