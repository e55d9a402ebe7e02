// Helpers for tests of the inbox: an agent that fails, asks or waits on request, and locators of rows.

import type { Locator, Page } from "playwright-core";
import type { House, Play } from "../../gateway/kit.ts";

export const MAIN = "agent:main:main";
export const RESEARCH = "agent:research:main";

/**
 * Returns a play that fails, asks a question or waits, as the message says. The words after "fail"
 * are in the error. `mend` ends the failures.
 */
export function player() {
  const held = Promise.withResolvers<void>();
  let mends = false;
  const play: Play = async ({ run }) => {
    const { text } = run.input;
    if (text.startsWith("hold")) await held.promise;
    if (text.startsWith("fail") && !mends) throw new Error(`401 invalid key${text.slice("fail".length)}`);
    return text.startsWith("ask") ? "Both tests pass.\n\nShall I deploy?" : `did ${text}`;
  };
  const mend = (): void => {
    mends = true;
  };
  return { play, mend, release: held.resolve };
}

export async function say(house: House, sessionKey: string, text: string): Promise<string> {
  const accepted = await house.engine.accept({ sessionKey, input: { text } });
  if (!accepted.ok) throw new Error(accepted.error);
  return accepted.value.run.runId;
}

/** Finds a group by its title. */
export const group = (page: Page, name: string) =>
  page.getByRole("region", { name: new RegExp(`^${name} `) });
/** Finds the rows of a group with this text. */
export const rowIn = (page: Page, name: string, text: string) =>
  group(page, name).getByRole("listitem").filter({ hasText: text });
/** Waits until a row has stayed in its place for long enough that its button acts. */
export const settled = (button: Locator) => button.click({ trial: true });
