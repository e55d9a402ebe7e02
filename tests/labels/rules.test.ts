// The rules of labels beside a plain model of sets, over random stories of sends, results, files, forks and
// resets. `npx vitest run --project deep tests/labels/rules.test.ts` plays 100,000 stories.

import { expect } from "vitest";
import { both, rounds } from "../kit/deep.ts";
import { playRules } from "./rules-story.ts";

both(
  "LA1: no text gets from outside and private to a sink without a question, and no other is asked about",
  () => {
    const stories = rounds(2_000, 100_000);
    const first = Number(process.env.PARLEY_SEED ?? 1);
    let sinks = 0;
    for (let seed = first; seed < first + stories; seed += 1) {
      const story = playRules(seed);
      sinks += story.sinks;
      expect(story.wrong, `SEED=${seed}`).toBeUndefined();
    }
    expect(sinks).toBeGreaterThan(stories);
  },
);
