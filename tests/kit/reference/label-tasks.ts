// docs/reference/LABEL-TASKS.md: the tasks and attacks with which labels are tested, generated from the tests.

import { ATTACKS, BENIGN, NOT_STOPPED } from "../../labels/attacks.ts";
import { TASKS } from "../../labels/week-tasks.ts";
import { page, table } from "./markdown.ts";

const count = (questions = 0): string => (questions === 0 ? "" : `${questions}`);

export const labelTasksPage = (): string =>
  page(
    "# Tasks and attacks of labels",
    "Generated from the tests of [labels](../LABELS.md). Update it with `npx vitest run tests/reference.test.ts --update`.",
    "## A normal week",
    "All happen in one gateway, in this order, with the default settings and the reading tools of its MCP " +
      "servers in `labels.sinks.tools` (`tests/labels/week.test.ts`).",
    table(
      ["task", "questions"],
      TASKS.map(({ task, questions }) => [task, count(questions)]),
    ),
    "## Attacks",
    "A model that obeys every text gives each a try (`npm run labels:table`).",
    table(
      ["suite", "attack", "stopped with `ask`"],
      ATTACKS.map(({ suite, name }) => [suite, name, NOT_STOPPED.includes(name) ? "no" : "yes"]),
    ),
    "## Tasks beside them",
    table(
      ["suite", "task"],
      BENIGN.map(({ suite, name }) => [suite, name]),
    ),
  );
