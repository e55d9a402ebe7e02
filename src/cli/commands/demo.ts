// Implements `parley demo`: plays the steps one after another and reports whether each passed its check.

import { safeLine } from "../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";
import { AGENTS, OPEN_TOOLS } from "../demo/gateways.ts";
import { type DemoConnection, DemoSetup } from "../demo/setup.ts";
import { DemoFailure, Stage } from "../demo/stage.ts";
import { STEPS, type Step } from "../demo/steps.ts";
import type { Reply } from "../gateway-link.ts";

/**
 * Time limits of a step. They differ, because the offline model answers at once and a real model takes
 * longer.
 */
const PATIENCE_MS = { offline: 10_000, real: 120_000 };

interface Outcome {
  readonly title: string;
  readonly ok: boolean;
  readonly text: string;
}

interface Performance {
  readonly cli: Cli;
  readonly setup: DemoSetup;
  readonly stage: Stage;
  readonly patienceMs: number;
}

async function playOne({ cli, setup, stage, patienceMs }: Performance, step: Step): Promise<Outcome> {
  const { title } = step;
  cli.line();
  cli.line(cli.style("bold", `${STEPS.indexOf(step) + 1}  ${title}`));
  try {
    const text = await step.play(stage, patienceMs);
    cli.line(`    ${cli.style("green", "✓")} ${text}`);
    return { title, ok: true, text };
  } catch (error) {
    if (!(error instanceof DemoFailure)) throw error;
    if (!setup.left) cli.line(`    ${cli.style("red", "✗")} ${safeLine(error.message)}`);
    return { title, ok: false, text: error.message };
  }
}

async function play(cli: Cli, setup: DemoSetup): Promise<Reply<Outcome[]>> {
  const open = await setup.open("open", OPEN_TOOLS);
  if (!open.ok) return open;
  const byDefault = await setup.open("default", {});
  if (!byDefault.ok) return byDefault;
  const gateways: Record<Step["where"], DemoConnection> = { open: open.value, default: byDefault.value };
  const [model = ""] = open.value.gateway.settings.agents.map((agent) => agent.model);
  const offline = model.startsWith("offline/");
  const modelText = offline ? "the offline model (no key, no network)" : model;
  cli.line(`Three agents (${AGENTS.join(", ")}) on ${modelText}, in a temporary directory.`);
  const stages = { open: new Stage(cli, gateways.open.link), default: new Stage(cli, gateways.default.link) };
  const patienceMs = offline ? PATIENCE_MS.offline : PATIENCE_MS.real;
  const outcomes: Outcome[] = [];
  for (const step of STEPS) {
    if (setup.left) break;
    outcomes.push(await playOne({ cli, setup, stage: stages[step.where], patienceMs }, step));
  }
  return { ok: true, value: outcomes };
}

export async function runDemo(cli: Cli): Promise<number> {
  const { clock } = cli.parts.world;
  const startedAt = clock.monotonic();
  const setup = await DemoSetup.make(cli);
  const interrupted = Promise.withResolvers<Reply<Outcome[]>>();
  const offs = (["SIGINT", "SIGTERM"] as const).map((name) =>
    cli.parts.onSignal(name, () =>
      interrupted.resolve({ ok: false, code: "interrupted", error: "The demo was stopped." }),
    ),
  );
  let played: Reply<Outcome[]>;
  try {
    const playing = play(cli, setup);
    // When the demo is stopped, its current step fails: ignore that failure.
    playing.catch(() => {});
    played = await Promise.race([playing, interrupted.promise]);
  } finally {
    for (const off of offs) off();
    await setup.leave();
  }
  if (!played.ok) return cli.fail(played, EXIT.failed);
  const outcomes = played.value;
  const seconds = Math.round((clock.monotonic() - startedAt) / 100) / 10;
  const failed = outcomes.filter(({ ok }) => !ok).length;
  cli.line();
  if (failed === 0)
    cli.line(`All ${outcomes.length} steps passed in ${seconds} s. Your turn: npx parley-gateway`);
  else cli.line(`${failed} of ${outcomes.length} steps failed.`);
  cli.document({ ok: failed === 0, seconds, steps: outcomes });
  return failed === 0 ? EXIT.done : EXIT.failed;
}
