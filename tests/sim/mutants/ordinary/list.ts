// Mutants of rules that no story of the simulation reaches. Each names the test that must fail with it.

import type { Mutant } from "../mutant.ts";

export interface TestedMutant extends Mutant {
  /** File and title of the test. */
  readonly test: readonly [file: string, title: string];
}

const OUTBOUND = "src/channels/outbound.ts";
const OUTBOX_TESTS = "tests/channels/outbound.test.ts";

export const TESTED_MUTANTS: readonly TestedMutant[] = [
  {
    name: "places-shared-by-accounts",
    breaks: "I5: an account that never answers takes the places of all others",
    file: OUTBOUND,
    from: "rows: TEXTS_AT_ONCE - pace.underWay(place)",
    to: "rows: TEXTS_AT_ONCE - this.#underWay.size",
    test: [
      OUTBOX_TESTS,
      "the places for texts are those of an account: one that never answers delays no other",
    ],
  },
  {
    name: "retry-after-a-day-tried-once",
    breaks: "I5: a delivery that an operator retries is given up after one attempt if it is older than a day",
    file: "src/store/queries/channels/deliveries.ts",
    from: ", give_up_at: at + GIVE_UP_MS",
    to: "",
    test: [OUTBOX_TESTS, "a retry by an operator starts the day of attempts again"],
  },
  {
    name: "absent-channel-fails-at-once",
    breaks: "OB1: a text fails for good because one of several gateways does not have its account yet",
    file: OUTBOUND,
    from: "const waits = isYoung || !(await settingsAgree(db).catch(() => false));",
    to: "const waits = isYoung && settingsAgree === undefined;",
    test: [
      OUTBOX_TESTS,
      "OB1: in a cluster, a text for an absent account fails only when all gateways have the same settings",
    ],
  },
  {
    name: "failed-successor-wedges-the-lane",
    breaks: "L4: a run whose successors throw never ends, and its lane never continues",
    file: "src/engine/engine.ts",
    from: "guardSuccessors(parts.successors)",
    to: "(guardSuccessors, parts.successors)",
    test: [
      "tests/engine/follow-up.test.ts",
      "L4: a turn whose successors fail ends at once, its lane continues, and they are made up for",
    ],
  },
  {
    name: "damaged-row-blocks-the-take-over",
    breaks: "I2: one damaged row keeps the other runs of a dead process from being taken over",
    file: "src/store/queries/runs/runs.ts",
    from: "objectOf(ownJson(json)) ?? DAMAGED",
    to: "JSON.parse(json)",
    test: [
      "tests/contract/store.test.ts",
      "a damaged row of a dead process does not keep its other runs from being taken over",
    ],
  },
];
