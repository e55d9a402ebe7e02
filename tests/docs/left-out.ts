// Owns the one list of commands in the documents that no test runs as they stand there: why not, and what is looked at
// instead. An entry that fits no command any more fails, as does a command that neither runs nor stands here.

import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Ground } from "./ground.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface LeftOut {
  /** In which documents; absent: in any. */
  readonly pages?: readonly string[];
  readonly command: RegExp;
  readonly why: string;
  /** The nearest check; throws. */
  readonly instead: (ground: Ground, found: RegExpExecArray) => unknown;
}

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const PACKAGE = JSON.parse(read("package.json")) as { name: string; scripts: Record<string, string> };

function expectThat(good: boolean, otherwise: string): void {
  if (!good) throw new Error(otherwise);
}

/** There is such a script, and what it starts is there. */
export function checkScript(name: string): void {
  const script = PACKAGE.scripts[name];
  expectThat(script !== undefined, `package.json has no script "${name}"`);
  for (const [, path = ""] of (script ?? "").matchAll(/node (?:--\S+ )*(\S+\.[jt]s)/g))
    expectThat(existsSync(join(ROOT, path)), `${name} starts ${path}, which is not there`);
}

const run = promisify(execFile);

/** The service file is one that systemd reads, where there is a systemd to ask. */
async function checkUnit(ground: Ground): Promise<void> {
  const { code, out } = await ground.run("parley service install --print");
  expectThat(code === 0 && out.includes("[Service]"), `no unit: ${out}`);
}

/** Of `docker compose`: the files that it is given are there and name what they need. */
function checkCompose(file: string): void {
  const text = read(file);
  expectThat(/^services:$/m.test(text), `${file} has no services`);
}

export const LEFT_OUT: readonly LeftOut[] = [
  {
    pages: ["README.md", "CONTRIBUTING.md", "docs/TOUR.md"],
    command: /^npm (?:ci|install)(?: && npm (\w+))?$/,
    why: "installs into the tree in which the tests run; .ci/run does that in a clean clone, before all tests",
    instead: (_, [, script]) => script === undefined || checkScript(script),
  },
  {
    command: /^npm install (?:--global )?(\S+?)(?:@latest)?$/,
    why: "what a registry has is not this tree; tests/e2e/package.test.ts packs this one and installs it",
    instead: (_, [, name]) => expectThat(name === PACKAGE.name, `the package is called ${PACKAGE.name}`),
  },
  {
    command: /^npm run (demo|build:page|types)$/,
    why: "a minute of its own; tests/cli/docs.test.ts plays the demo, each run of tests builds the page, .ci/run checks types",
    instead: (_, [, script = ""]) => checkScript(script),
  },
  {
    command: /^npm run sim -- --seeds 100000$/,
    why: "hours",
    instead: async () => {
      const { stdout } = await run(process.execPath, [join(ROOT, "tests/sim/run.ts"), "--seeds", "2"]);
      expectThat(/\b2 stories/.test(stdout), stdout);
    },
  },
  {
    command: /^npm run sim -- (.*)$/,
    why: "npm is not asked; the script itself is run with these options",
    instead: async (_, [, options = ""]) => {
      await run(process.execPath, [join(ROOT, "tests/sim/run.ts"), ...options.split(" ")]);
    },
  },
  {
    command: /^(?:systemctl --user|loginctl|journalctl --user)/,
    why: "a test does not touch the machine's services; tests/cli/service.test.ts asks a systemctl of its own the same",
    instead: checkUnit,
  },
  {
    command: /^docker /,
    why: "no daemon; tests/container.test.ts reads Dockerfile and compose.yaml",
    instead: () => checkCompose("compose.yaml"),
  },
];
