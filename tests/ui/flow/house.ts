// Helpers for the tests of the flow view: a gateway whose model does what messages say, and its page.

import type { Page } from "playwright-core";
import { type House, type HouseOptions, openHouse, quiet, TOKEN } from "../../gateway/kit.ts";
import { type VisitOptions, visit } from "../../kit/browser.ts";
import { talkingModel } from "../../kit/talking-model.ts";

export const MAIN = "agent:main:main";
export const RESEARCH = "agent:research:main";
export const WRITER = "agent:writer:main";

export const rules = (more: Record<string, unknown> = {}) => ({
  session: { agentToAgent: { maxPingPongTurns: 0, maxHops: 16, maxChainRuns: 200, ...more } },
});

export function house(options: HouseOptions = {}): Promise<House> {
  return openHouse({ model: talkingModel(), choices: rules(), ...options });
}

/** Sends a message to main, and waits until all work is done. Returns the id of the chain. */
export async function tell(here: House, text: string): Promise<string> {
  const accepted = await here.engine.accept({ sessionKey: MAIN, input: { text } });
  if (!accepted.ok) throw new Error(accepted.error);
  await quiet(here);
  return accepted.value.run.chainId;
}

export const HOUR_MS = 3_600_000;

/** Moves the last activity of a chain into the past. */
export async function age(here: House, chainId: string, ms: number): Promise<void> {
  await here.store.transaction(async (tx) => {
    const at = here.engine.now() - ms;
    await tx.updateTable("chains").set({ last_at: at }).where("chain_id", "=", chainId).execute();
  });
}

export async function open(here: House, at = "flow", more: VisitOptions = {}): Promise<Page> {
  const { page } = await visit(here.http, { token: TOKEN, at, ...more });
  return page;
}

export const stepNamed = (page: Page, name: RegExp) =>
  page.locator(".step").and(page.getByRole("button", { name }));
