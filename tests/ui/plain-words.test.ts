// Words of the gateway that the page shows to people: lines of the log, and hints of a model's test.

import { expect, test } from "vitest";
import { type LogLine, titleOf } from "../../ui/src/operations/log-lines.ts";
import { plainHint } from "../../ui/src/setup/failed-run.ts";

test("a line of the log names the MCP server that it is about, once", () => {
  const line = (msg: string): LogLine =>
    ({ seq: 1, time: 1, level: "warn", msg, server: "pager", why: "no such file" }) as LogLine;
  expect(titleOf(line("an MCP server did not start"))).toBe("an MCP server did not start · pager");
  expect(titleOf(line("pager has no tools"))).toBe("pager has no tools");
});

test("a hint names the provider's key, address and settings without their paths", () => {
  expect(plainHint("Check the key (models.providers.my-own.apiKey) and its rights.")).toBe(
    "Check the key and its rights.",
  );
  expect(plainHint("Check the id of the model, and models.providers.local.baseUrl.")).toBe(
    "Check the id of the model, and the address of the provider.",
  );
  expect(plainHint("Check models.providers.local.")).toBe("Check the settings of the provider.");
  expect(plainHint("Try again later: the provider has a problem.")).toContain("Try again later");
});
