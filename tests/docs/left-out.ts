// Lists the documented commands that no test runs unchanged: the reason, and the check that replaces the run.
// A test fails if an entry matches no command, or if a command neither runs nor has an entry.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { readCompose } from "../deploy/compose.ts";
import type { Ground } from "./ground.ts";
import { ROOT, readDocument } from "./pages.ts";

export interface LeftOut {
  /** Names of the documents to which the entry applies. If absent, it applies to all. */
  readonly pages?: readonly string[];
  readonly command: RegExp;
  readonly why: string;
  /** The check that replaces the run; throws if it fails. */
  readonly instead: (ground: Ground, found: RegExpExecArray) => unknown;
}

const PACKAGE = JSON.parse(readDocument("package.json")) as { name: string; scripts: Record<string, string> };

function expectThat(good: boolean, otherwise: string): void {
  if (!good) throw new Error(otherwise);
}

/** Checks that package.json has this script, and that its program exists. */
export function checkScript(name: string): void {
  const script = PACKAGE.scripts[name];
  expectThat(script !== undefined, `package.json has no script "${name}"`);
  for (const [, path = ""] of (script ?? "").matchAll(/node (?:--\S+ )*(\S+\.[jt]s)/g))
    expectThat(existsSync(join(ROOT, path)), `${name} starts ${path}, which is not there`);
}

const run = promisify(execFile);

/** Checks the unit file with systemd if it is installed. */
async function checkUnit(ground: Ground): Promise<void> {
  const { code, out } = await ground.run("parley service install --print");
  expectThat(code === 0 && out.includes("[Service]"), `no unit: ${out}`);
}

/** Checks that the file of a `docker compose` command has the named service. */
function checkCompose(command: string): void {
  const file = /--file (\S+)/.exec(command)?.[1] ?? "compose.yaml";
  const services = Object.keys(readCompose(file).services);
  const words = command.replace(/--file \S+/g, "").split(" ");
  const action = words.findIndex((word) => ["up", "build", "exec"].includes(word));
  const named = words.slice(action + 1).find((word) => !word.startsWith("--"));
  expectThat(named === undefined || services.includes(named), `no service ${named} in ${services}`);
}

export const LEFT_OUT: readonly LeftOut[] = [
  {
    pages: ["docs/CODING-AGENTS.md"],
    command: /^git clone --depth 1 https:\/\/github\.com\/parley-gateway\/parley \/tmp\/parley$/,
    why: "needs the network",
    instead: () => checkScript("plugins"),
  },
  {
    pages: ["docs/CODING-AGENTS.md"],
    command: /^(?:claude|codex|gemini|qwen) (?:plugin|extensions) .+$/,
    why: "needs a coding agent and the repository; npm run plugins runs these commands with a checkout",
    instead: (_, [command]) => {
      const [, folder] = /\/tmp\/parley\/(\S+)$/.exec(command) ?? [];
      const marketplace = command.startsWith("claude") ? ".claude-plugin" : ".agents/plugins";
      const path = folder ?? `${marketplace}/marketplace.json`;
      expectThat(existsSync(join(ROOT, path)), `${path} is not there`);
    },
  },
  {
    command: /^npx parley-gateway config edit$/,
    why: "it asks in a terminal before it saves",
    instead: async (ground) => {
      const { code, out, err } = await ground.run("EDITOR=true parley config edit --yes");
      expectThat(code === 0 && out.includes("Nothing changes."), `config edit failed: ${out}${err}`);
    },
  },
  {
    command: /^npx parley-gateway join (\S+) --session \S+$/,
    why: "asks at a terminal; tests/features/join/join.test.ts joins with --yes",
    instead: async (ground, [, program]) => {
      const { out } = await ground.run("parley join --help");
      expectThat(out.includes(`"${program}"`), `nothing joins as ${program}`);
    },
  },
  {
    pages: ["README.md", "CONTRIBUTING.md", "docs/TOUR.md"],
    command: /^npm (?:ci|install)(?: && npm (\w+))?$/,
    why: "installs into the tree in which the tests run; .ci/run does that in a clean clone, before all tests",
    instead: (_, [, script]) => script === undefined || checkScript(script),
  },
  {
    command: /^npm install (?:--global )?(\S+?)(?:@latest)?$/,
    why: "what a registry has is not this tree; tests/e2e/package.deep.test.ts packs this one and installs it",
    instead: (_, [, name]) => expectThat(name === PACKAGE.name, `the package is called ${PACKAGE.name}`),
  },
  {
    pages: ["docs/MONITORING.md"],
    command: /^npm install ((?:@opentelemetry\/\S+ ?)+)$/,
    why: "no registry is asked; the command is the one that the gateway says, and tests/telemetry finds these libraries",
    instead: (_, [, named = ""]) => {
      const { peerDependencies } = JSON.parse(readDocument("package.json")) as { peerDependencies: object };
      const wanted = Object.entries(peerDependencies).map(([name, version]) => `${name}@${version}`);
      expectThat(named === wanted.join(" "), `traces need ${wanted.join(" ")}`);
    },
  },
  {
    pages: ["docs/INSTALL.md"],
    command: /^(?:curl -fsSLO \S+\/install\.sh|sh install\.sh(?: --uninstall)?|brew install \S+)$/,
    why: "downloads a release; tests/release/release.deep.test.ts runs the install script of this tree, and reads the formula",
    instead: () => expectThat(existsSync(join(ROOT, "release/install.sh")), "there is no install script"),
  },
  {
    pages: ["CONTRIBUTING.md"],
    command: /^npm run (release) -- \d+\.\d+\.\d+(?: --dry-run)?$/,
    why: "runs all checks; tests/release makes a release of a small repository, and a dry run of this one",
    instead: (_, [, script = ""]) => checkScript(script),
  },
  {
    command: /^npm run (demo|build:page|types)$/,
    why: "a minute of its own; tests/cli/docs.test.ts plays the demo, each run of tests builds the page, .ci/run checks types",
    instead: (_, [, script = ""]) => checkScript(script),
  },
  {
    command: /^npm run (test:deep)$/,
    why: "a quarter of an hour of tests; .ci/run runs it",
    instead: (_, [, script = ""]) => checkScript(script),
  },
  {
    pages: ["docs/internals/BENCHMARKS.md"],
    command: /^npm run (bench)(?: -- (.*))?$/,
    why: "ten minutes, on a machine that does nothing else; what is looked at is whether it knows the options",
    instead: (_, [, script = "", options = ""]) => {
      checkScript(script);
      const known = readDocument("bench/options.ts");
      for (const [, option = ""] of options.matchAll(/--([a-z]+)/g))
        expectThat(new RegExp(`\\b${option}\\b`).test(known), `bench has no --${option}`);
    },
  },
  {
    command: /^npm run sim -- --seeds? \d+$/,
    why: "hours, and tests/sim tells stories from such seeds in each run of tests",
    instead: () => checkScript("sim"),
  },
  {
    command: /^npm run (sim) -- (--mutant list)$/,
    why: "npm is not asked; the script itself is run with these options",
    instead: async (_, [, script = "", options = ""]) => {
      checkScript(script);
      await run(process.execPath, [join(ROOT, "tests/sim/run.ts"), ...options.split(" ")]);
    },
  },
  {
    command: /^(?:systemctl --user|loginctl|journalctl --user)/,
    why: "a test does not touch the machine's services; tests/features/service/service.test.ts asks a systemctl of its own the same",
    instead: checkUnit,
  },
  {
    command: /^docker compose (.*)$/,
    why: "no daemon; tests/container.test.ts reads the Dockerfile and the compose files",
    instead: (_, [command]) => checkCompose(command),
  },
  {
    command: /^docker (?:build|run|exec) /,
    why: "no daemon; tests/container.test.ts reads the Dockerfile and runs the image's health check",
    instead: () => expectThat(/^FROM \S+/m.test(readDocument("Dockerfile")), "there is no Dockerfile"),
  },
  {
    command:
      /^kubectl create secret generic (\S+) --from-literal=PARLEY_TOKEN=… --from-literal=PGPASSWORD=…$/,
    why: "no cluster; tests/deploy/helm.deep.test.ts renders the chart with this Secret",
    instead: (_, [, name = ""]) =>
      expectThat(
        readDocument("tests/deploy/helm.deep.test.ts").includes(`"${name}"`),
        `no test of a Secret ${name}`,
      ),
  },
  {
    command: /^helm upgrade --install parley (\S+) --set ([\s\S]*)$/,
    why: "no cluster and no Helm; tests/deploy/helm.deep.test.ts renders the chart with these values",
    instead: (_, [, chart = "", values = ""]) => {
      const known = readDocument(`${chart}/values.yaml`);
      for (const [, name = ""] of `--set ${values}`.matchAll(/--set (\w+)/g))
        expectThat(new RegExp(`^${name}:`, "m").test(known), `the chart has no value ${name}`);
    },
  },
];
