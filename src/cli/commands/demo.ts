// Implements `parley demo`: plays the steps one after another and reports whether each passed its check.

import { once } from "node:events";
import { ok } from "../../core/shapes/errors.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { type Cli, EXIT, stopOnSignals } from "../cli.ts";
import { AGENTS, DemoGateways, OPEN_TOOLS } from "../demo/gateways.ts";
import { DemoFailure, Stage } from "../demo/stage.ts";
import { STEPS, type Step } from "../demo/steps.ts";
import { type Link, openLink, type Reply } from "../gateway-link.ts";

/**
 * Time limits of a step. They differ, because the offline model answers at once and a real model takes
 * longer.
 */
const PATIENCE_MS = { offline: 10_000, real: 120_000 };

const STOP_GRACE_MS = 2_000;

interface Outcome {
  readonly title: string;
  readonly ok: boolean;
  readonly text: string;
}

/** Plays one step, and checks it. `isLeft` tells whether the demo was stopped. */
async function playOne(cli: Cli, stage: Stage, step: Step, patienceMs: number, isLeft: () => boolean) {
  const { title } = step;
  cli.line();
  cli.line(cli.style("bold", `${STEPS.indexOf(step) + 1}  ${title}`));
  try {
    const text = await step.play(stage, patienceMs);
    cli.line(`    ${cli.style("green", "✓")} ${text}`);
    return { title, ok: true, text };
  } catch (error) {
    if (!(error instanceof DemoFailure)) throw error;
    if (!isLeft()) cli.line(`    ${cli.style("red", "✗")} ${safeLine(error.message)}`);
    return { title, ok: false, text: error.message };
  }
}

/** Starts a gateway with the given `tools` settings for each kind of step, and plays the steps there. */
async function play(cli: Cli, gateways: DemoGateways, links: Link[]): Promise<Reply<Outcome[]>> {
  const stages = new Map<Step["where"], Stage>();
  let model = "";
  for (const [where, tools] of [["open", OPEN_TOOLS] as const, ["default", {}] as const]) {
    const opened = await gateways.open(where, { tools });
    if (!opened.ok) return opened;
    const { url, token, settings } = opened.value;
    const linked = await openLink({ url, token }, { reconnect: false, world: cli.parts.world });
    if (!linked.ok) return linked;
    links.push(linked.value);
    stages.set(where, new Stage(cli, linked.value));
    model ||= settings.agents[0]?.model ?? "";
  }
  const offline = model.startsWith("offline/");
  const modelText = offline ? "the offline model (no key, no network)" : model;
  cli.line(`Three agents (${AGENTS.join(", ")}) on ${modelText}, in a temporary directory.`);
  const patienceMs = offline ? PATIENCE_MS.offline : PATIENCE_MS.real;
  const outcomes: Outcome[] = [];
  for (const step of STEPS) {
    if (gateways.left) break;
    const stage = stages.get(step.where) as Stage;
    outcomes.push(await playOne(cli, stage, step, patienceMs, () => gateways.left));
  }
  return ok(outcomes);
}

export async function runDemo(cli: Cli): Promise<number> {
  const { clock } = cli.parts.world;
  const startedAt = clock.monotonic();
  const gateways = await DemoGateways.make(cli.parts);
  const links: Link[] = [];
  let played: Reply<Outcome[]>;
  try {
    using stop = stopOnSignals(cli.parts);
    const interrupted = once(stop.signal, "abort").then(
      (): Reply<Outcome[]> => ({ ok: false, code: "interrupted", error: "The demo was stopped." }),
    );
    const playing = play(cli, gateways, links);
    // When the demo is stopped, its current step fails: ignore that failure.
    playing.catch(() => {});
    played = await Promise.race([playing, interrupted]);
  } finally {
    for (const link of links) link.client.close();
    await gateways.leave(STOP_GRACE_MS);
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
