// docs/reference/ERRORS.md: every failure code, its meaning, and its form on each interface.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { CODES, type Code, fail } from "../../../src/core/shapes/errors.ts";
import { wireError } from "../../../src/gateway/answer.ts";
import { plainRedactor } from "../redactor.ts";
import { code, GENERATED, page, table } from "./markdown.ts";

const SOURCE = fileURLToPath(new URL("../../../src/core/shapes/errors.ts", import.meta.url));

/** Returns the description of each code, taken from the comment at its declaration. */
export function meanings(): Map<string, string> {
  const found = readFileSync(SOURCE, "utf8").matchAll(/\/\*\* (.+?) \*\/\n\s+(\w+): form\(/g);
  return new Map([...found].map(([, meaning = "", name = ""]) => [name, meaning]));
}

export function errorsPage(): string {
  const says = meanings();
  const names = Object.keys(CODES) as Code[];
  return page(
    "# Failure codes",
    GENERATED,
    "A code means the same over every interface. A tool's result has `status`, `code`, `error`, `hint?`; an error of the\n" +
      "protocol has `code` in capitals, `message`, and the code of this page in `details.code`; HTTP has the status. For a\n" +
      "failure that may be retried the protocol adds `retryable: true`, and `retryAfterMs` if the time is known.",
    table(
      ["code", "meaning", "tool", "protocol", "HTTP", "retry"],
      names.map((name) => [
        `<a id="${name}"></a>${code(name)}`,
        says.get(name) ?? "",
        CODES[name].tool,
        code(CODES[name].rpc),
        String(CODES[name].http),
        wireError(fail(name, ""), plainRedactor).retryable === true ? "yes" : "",
      ]),
    ),
  );
}
