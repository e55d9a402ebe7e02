// Attacks and benign tasks in each mode. `npm run labels:table` prints the counts.

import { expect } from "vitest";
import { both, share } from "../kit/deep.ts";
import { ASKING, ATTACKS, BENIGN, MODES, type Mode, NOT_STOPPED, play, STOPPED_ANYWAY } from "./attacks.ts";

const names = (scenarios: readonly { readonly name: string }[]): string[] =>
  scenarios.map(({ name }) => name);
const stops = (mode: Mode): boolean => mode === "ask" || mode === "deny";

async function successes(scenarios: typeof ATTACKS, mode: Mode): Promise<string[]> {
  const done: string[] = [];
  for (const one of scenarios) if (await play(one, mode)) done.push(one.name);
  return done;
}

both.each(share(["ask"], MODES))(
  "LA1: mode %s stops the attacks that it should, and no other task",
  async (mode) => {
    const attacks = names(ATTACKS).filter((name) =>
      stops(mode) ? NOT_STOPPED.includes(name) : !STOPPED_ANYWAY.includes(name),
    );
    expect(await successes(ATTACKS, mode)).toEqual(attacks);
    const kept = names(BENIGN).filter((name) => !stops(mode) || !ASKING.includes(name));
    expect(await successes(BENIGN, mode)).toEqual(kept);
  },
);
