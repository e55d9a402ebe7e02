// Titles that models wrote, as they are shown.

import { expect, test } from "vitest";
import { titleIn } from "../../../src/core/text/title.ts";

test.each([
  ["Plan for the week", "Plan for the week"],
  ['\n\n  **"Plan for the week."**\nSecond line', "Plan for the week"],
  ["# \u201ePlan f\u00fcr die Woche\u201c", "Plan f\u00fcr die Woche"],
  ["<b>Plan</b> for `the` [week](https://evil.test/)", "Plan for the week"],
  ["- Plan\tfor \u202ethe\u202c\u0007 week", "Plan for the week"],
  ["<script>alert(1)</script>", "alert(1)"],
  ["snake_case and 2 > 1", "snake_case and 2 > 1"],
  ["\u201c\u201d\n***\n", ""],
  ["", ""],
])("the answer %j becomes the title %j", (answer, title) => {
  expect(titleIn(answer)).toBe(title);
});
