// Owns `parley demo`: plays the steps one after another and says whether each showed what it promises.

import { safeLine } from "../../core/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";
import { AGENTS, OPEN_TOOLS } from "../demo/ground.ts";
import { type Place, Setting } from "../demo/setting.ts";
import { DemoFailure, Stage } from "../demo/stage.ts";
import { STEPS, type Step } from "../demo/steps.ts";
import type { Reply } from "../gateway-link.ts";

/** The offline model answers at once; a real one takes its time. */
const PATIENCE_MS = { offline: 10_000, real: 120_000 };

interface Outcome {
  readonly title: string;
  readonly ok: boolean;
  readonly text: string;
}

interface Performance {
  readonly cli: Cli;
  readonly setting: Setting;
  readonly stage: Stage;
  readonly patienceMs: number;
}

async function playOne({ cli, setting, stage, patienceMs }: Performance, step: Step): Promise<Outcome> {
  const { title } = step;
  cli.line();
  cli.line(cli.style("bold", `${STEPS.indexOf(step) + 1}  ${title}`));
  try {
    const text = await step.play(stage, patienceMs);
    cli.line(`    ${cli.style("green", "✓")} ${text}`);
    return { title, ok: true, text };
  } catch (error) {
    if (!(error instanceof DemoFailure)) throw error;
    if (!setting.left) cli.line(`    ${cli.style("red", "✗")} ${safeLine(error.message)}`);
    return { title, ok: false, text: error.message };
  }
}

async function play(cli: Cli, setting: Setting): Promise<Reply<Outcome[]>> {
  const open = await setting.open("open", OPEN_TOOLS);
  if (!open.ok) return open;
  const byDefault = await setting.open("default", {});
  if (!byDefault.ok) return byDefault;
  const places: Record<Step["where"], Place> = { open: open.value, default: byDefault.value };
  const [model = ""] = open.value.gateway.settings.agents.map((agent) => agent.model);
  const offline = model.startsWith("offline/");
  const which = offline ? "the offline model (no key, no network)" : model;
  cli.line(`Three agents (${AGENTS.join(", ")}) on ${which}, in a temporary directory.`);
  const stages = { open: new Stage(cli, places.open.link), default: new Stage(cli, places.default.link) };
  const patienceMs = offline ? PATIENCE_MS.offline : PATIENCE_MS.real;
  const outcomes: Outcome[] = [];
  for (const step of STEPS) {
    if (setting.left) break;
    outcomes.push(await playOne({ cli, setting, stage: stages[step.where], patienceMs }, step));
  }
  return { ok: true, value: outcomes };
}

export async function runDemo(cli: Cli): Promise<number> {
  const { clock } = cli.parts.world;
  const startedAt = clock.monotonic();
  const setting = await Setting.make(cli);
  const interrupted = Promise.withResolvers<Reply<Outcome[]>>();
  const offs = (["SIGINT", "SIGTERM"] as const).map((name) =>
    cli.parts.onSignal(name, () =>
      interrupted.resolve({ ok: false, code: "interrupted", error: "The demo was stopped." }),
    ),
  );
  let played: Reply<Outcome[]>;
  try {
    const playing = play(cli, setting);
    // Whatever it says after it was stopped, nobody hears.
    playing.catch(() => {});
    played = await Promise.race([playing, interrupted.promise]);
  } finally {
    for (const off of offs) off();
    await setting.leave();
  }
  if (!played.ok) return cli.fail(played, EXIT.failed);
  const outcomes = played.value;
  const seconds = Math.round((clock.monotonic() - startedAt) / 100) / 10;
  const failed = outcomes.filter(({ ok }) => !ok).length;
  cli.line();
  if (failed === 0)
    cli.line(`All ${outcomes.length} steps showed what they promise, in ${seconds} s. Your turn: npx parley`);
  else cli.line(`${failed} of ${outcomes.length} steps did not show what they promise.`);
  cli.document({ ok: failed === 0, seconds, steps: outcomes });
  return failed === 0 ? EXIT.done : EXIT.failed;
}
