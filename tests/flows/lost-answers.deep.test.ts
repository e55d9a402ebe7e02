// Lost answers to commits of PostgreSQL. Slow, because each story makes its own schema.

import { lostAnswersContract } from "./lost-answers.ts";

lostAnswersContract("postgres");
