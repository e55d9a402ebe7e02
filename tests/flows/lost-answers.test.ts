// Loses answers to commits of the embedded store. lost-answers.deep.test.ts does the same with PostgreSQL.

import { lostAnswersContract } from "./lost-answers.ts";

lostAnswersContract("sqlite");
