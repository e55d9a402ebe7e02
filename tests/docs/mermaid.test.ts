// Checks the diagrams in the documents, because mermaid does not draw a diagram with a single invalid line.

import { expect, test } from "vitest";
import { readPage } from "./page.ts";
import { PAGES, readDocument } from "./pages.ts";

const LINES: Readonly<Record<string, readonly RegExp[]>> = {
  sequenceDiagram: [
    /^participant [A-Z] as [^:;#]+$/,
    /^[A-Z](?:->>|-->>)[A-Z]: [^;#]+$/,
    /^Note over [A-Z](?:,[A-Z])?: [^;#]+$/,
  ],
  "stateDiagram-v2": [
    /^direction LR$/,
    /^(?:\[\*\]|\w+) --> (?:\[\*\]|\w+)(?:: [^:;#]+)?$/,
    /^state "[^"]+" as \w+$/,
  ],
  "flowchart LR": [/^\w+(?:\["[^"]+"\])? -- [^-"]+ --> \w+(?:\["[^"]+"\])?$/, /^\w+ -\. "[^"]+" \.-> \w+$/],
};

function problemsOf(text: string): string[] {
  const [kind = "", ...lines] = text.trimEnd().split("\n");
  const known = LINES[kind];
  if (known === undefined) return [`no diagram is a ${JSON.stringify(kind)}`];
  const wrong = lines.filter((line) => !known.some((pattern) => pattern.test(line.trim())));
  if (kind !== "sequenceDiagram") return wrong;
  const named = new Set(lines.flatMap((line) => /participant (\w)/.exec(line)?.[1] ?? []));
  const used = lines.flatMap((line) => line.replace(/:.*/, "").match(/\b[A-Z]\b/g) ?? []);
  return [...wrong, ...used.filter((name) => !named.has(name)).map((name) => `nobody is ${name}`)];
}

const DIAGRAMS = PAGES.flatMap((path) =>
  readPage(readDocument(path))
    .blocks.filter(({ language }) => language === "mermaid")
    .map(({ text, line }) => ({ where: `${path}:${line}`, text })),
);

test("the pages contain diagrams", () => {
  expect(DIAGRAMS.length).toBeGreaterThan(3);
});

test.each(DIAGRAMS)("mermaid can read the diagram at $where", ({ text }) => {
  expect(problemsOf(text)).toEqual([]);
});

test("an invalid line, an unknown participant and an unknown diagram are found", () => {
  expect(problemsOf("pie\n")).toEqual(['no diagram is a "pie"']);
  expect(problemsOf("sequenceDiagram\n    participant A as a\n    A->>B: hello")).toEqual(["nobody is B"]);
  expect(problemsOf("stateDiagram-v2\n    a --> b: one; two")).toEqual(["    a --> b: one; two"]);
});
