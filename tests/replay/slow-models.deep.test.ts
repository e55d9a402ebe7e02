// Chains with slow models, whose waits and sub-agents reach their time limits, replay without a difference.

import { expect, test } from "vitest";
import { replayChain } from "../../src/replay.ts";
import { openHouse } from "../gateway/kit.ts";
import { dice } from "../kit/dice.ts";
import { slowRandomModel } from "./random-chains.ts";
import { recordOf } from "./record-of.ts";

const SEED = process.env.PARLEY_SEED ?? String(Date.now());
/** Number of gateways that work at once, each on one chain, and how often. */
const [AT_ONCE, ROUNDS] = [20, 3];

/** Records a chain of a gateway with random limits. Returns the difference of its replay. */
async function differenceOf(seed: string): Promise<unknown> {
  const luck = dice(`limits ${seed}`);
  const limits = {
    maxPingPongTurns: luck.of([0, 2]),
    maxHops: luck.of([3, 16]),
    maxChainRuns: luck.of([8, 20, 200]),
  };
  const house = await openHouse({
    model: slowRandomModel(seed),
    choices: {
      tools: { visibility: "all", agentToAgent: { enabled: true, allow: [] } },
      session: { agentToAgent: limits },
      subagents: { maxSpawnDepth: 3, maxChildren: 4, announce: luck.of(["post", "wake"] as const) },
    },
  });
  const record = await recordOf(house, "a message");
  await house.stop();
  const result = await replayChain(record);
  return result.ok ? result.value.difference : result.error;
}

test("random chains with slow models and small limits replay without a difference", async () => {
  console.log(`SEED=${SEED}`);
  for (let round = 0; round < ROUNDS; round += 1) {
    const seeds = Array.from({ length: AT_ONCE }, (_, at) => `${SEED} slow ${round} ${at}`);
    const differences = await Promise.all(seeds.map(async (seed) => [seed, await differenceOf(seed)]));
    expect(differences.filter(([, difference]) => difference !== undefined)).toEqual([]);
  }
});
