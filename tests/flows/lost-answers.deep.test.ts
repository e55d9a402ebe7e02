// Lost answers to commits of PostgreSQL: each story makes a schema of its own, which takes long.

import { lostAnswersContract } from "./lost-answers.ts";

lostAnswersContract("postgres");
