// The default settings leave a normal week alone: its tasks have their effects with hardly a question.

import { expect, test } from "vitest";
import { openTown, type Town } from "./town.ts";
import { PAGES, READING_TOOLS, SERVERS, TASKS } from "./week-tasks.ts";

const QUESTIONS_MAX = 2;

const openCompany = (): Promise<Town> =>
  openTown({
    labels: { sinks: { hosts: [], tools: READING_TOOLS, places: [] } },
    servers: SERVERS,
    pages: PAGES,
  });

test("LA1, I16: the tasks of a normal week have their effects, and an owner is asked twice", async () => {
  const town = await openCompany();
  const questions: [string, number][] = [];
  for (const { task, plans, begin, did } of TASKS) {
    for (const [name, steps] of Object.entries(plans?.(town) ?? {})) town.plan(name, steps);
    const before = town.questions.length;
    await begin(town);
    await expect.poll(() => did(town), { message: task }).toBe(true);
    const count = town.questions.length - before;
    if (count > 0) questions.push([task, count]);
  }
  expect(questions).toEqual(TASKS.flatMap(({ task, questions: count }) => (count ? [[task, count]] : [])));
  expect(questions).toHaveLength(QUESTIONS_MAX);
  expect(TASKS.length).toBeGreaterThanOrEqual(40);
});
