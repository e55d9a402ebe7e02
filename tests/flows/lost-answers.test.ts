// Lost answers to commits of the embedded store. lost-answers.deep.test.ts does the same on PostgreSQL.

import { lostAnswersContract } from "./lost-answers.ts";

lostAnswersContract("sqlite");
