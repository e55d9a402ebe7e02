// Owns `parley doctor`: looks at everything that can keep a gateway from working, and says how to mend each
// thing.
// DO1: it changes nothing. What it could not look at, it says so.

import { safeLine, safeText } from "../../core/safe-text.ts";
import { addressOf, socketUrl } from "../address.ts";
import { type Cli, EXIT } from "../cli.ts";
import type { Finding } from "../doctor/finding.ts";
import { askGateway } from "../doctor/gateway-checks.ts";
import { checkHouse } from "../doctor/house-checks.ts";

const MARKS = { ok: "✓", warning: "!", problem: "✗" } as const;
const COLOURS = { ok: "green", warning: "yellow", problem: "red" } as const;

function show(cli: Cli, finding: Finding): void {
  const { level, name, text, mend } = finding;
  const indent = " ".repeat(14);
  const words = safeText(text).replaceAll("\n", `\n${indent}`);
  cli.line(`${cli.style(COLOURS[level], MARKS[level])} ${cli.style("bold", name.padEnd(11))} ${words}`);
  if (mend !== undefined) cli.line(`${indent}${cli.style("dim", `→ ${safeLine(mend)}`)}`);
}

interface DoctorOptions {
  readonly offline?: boolean;
}

export async function runDoctor(cli: Cli, _args: readonly string[], options: DoctorOptions): Promise<number> {
  const named = cli.options.url === undefined ? undefined : socketUrl(cli.options.url);
  if (named !== undefined && !named.ok) return cli.fail(named, EXIT.usage);
  const house = await checkHouse(cli, options.offline === true);
  const findings = [...house.findings];
  if (house.settings !== undefined) {
    const address = await addressOf(house.settings);
    const target = {
      url: named?.value ?? address.url,
      token: cli.options.token ?? address.token,
      settings: house.settings,
      storeHeld: house.storeHeld,
    };
    findings.push(...(await askGateway(cli, target)));
  }
  for (const finding of findings) show(cli, finding);
  const problems = findings.filter(({ level }) => level === "problem").length;
  const warnings = findings.filter(({ level }) => level === "warning").length;
  cli.line();
  cli.line(
    problems === 0
      ? `Nothing is broken${warnings === 0 ? "" : `; ${warnings} to know about`}.`
      : `${problems} to mend.`,
  );
  cli.document({ ok: problems === 0, findings });
  return problems === 0 ? EXIT.done : EXIT.failed;
}
