// Implements `parley doctor`: checks everything that can prevent a gateway from working, and explains how to
// fix each problem.
// Changes nothing. Lists each check that was skipped.

import { runningUrl, socketUrl, tokenFor } from "../../cli/address.ts";
import { type Cli, EXIT } from "../../cli/cli.ts";
import { count } from "../../cli/layout.ts";
import { safeLine, safeText } from "../../core/text/safe-text.ts";
import type { Finding } from "../../feature.ts";
import { checkGateway } from "./checks/gateway-checks.ts";
import { checkMachine } from "./checks/machine-checks.ts";

const MARKS = { ok: "✓", warning: "!", problem: "✗" } as const;
const COLOURS = { ok: "green", warning: "yellow", problem: "red" } as const;

export function printFinding(cli: Cli, finding: Finding): void {
  const { level, name, text, mend } = finding;
  const indent = " ".repeat(14);
  const words = safeText(text).replaceAll("\n", `\n${indent}`);
  cli.line(`${cli.style(COLOURS[level], MARKS[level])} ${cli.style("bold", name.padEnd(11))} ${words}`);
  if (mend !== undefined) cli.line(`${indent}${cli.style("dim", `→ ${safeLine(mend)}`)}`);
}

interface DoctorOptions {
  readonly offline?: boolean;
}

export async function runDoctor(cli: Cli, options: DoctorOptions): Promise<number> {
  const named = cli.options.url === undefined ? undefined : socketUrl(cli.options.url);
  if (named !== undefined && !named.ok) return cli.fail(named, EXIT.usage);
  const machine = await checkMachine(cli, options.offline === true);
  const findings = [...machine.findings];
  if (machine.settings !== undefined) {
    const target = {
      url: named?.value ?? runningUrl(machine.settings),
      token: cli.options.token ?? (await tokenFor(machine.settings)),
      settings: machine.settings,
      storeHeld: machine.storeHeld,
    };
    findings.push(...(await checkGateway(cli, target)));
  }
  for (const finding of findings) printFinding(cli, finding);
  const problems = findings.filter(({ level }) => level === "problem").length;
  const warnings = findings.filter(({ level }) => level === "warning").length;
  cli.line();
  const found = [
    problems === 0 ? "No problems" : count(problems, "problem"),
    ...(warnings === 0 ? [] : [count(warnings, "warning")]),
  ];
  cli.line(`${found.join(", ")}.`);
  cli.document({ ok: problems === 0, findings });
  return problems === 0 ? EXIT.done : EXIT.failed;
}
