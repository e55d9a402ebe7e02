// Records a chain.

import { recordText } from "../../../src/contract/chain-record.ts";
import type { ChainRecord } from "../../../src/core/shapes/record/chain.ts";
import type { RunInput } from "../../../src/core/shapes/run.ts";
import type { AcceptRequest } from "../../../src/engine/run/accept.ts";
import { readChainRecord } from "../../../src/store/queries/chains/record.ts";
import { type House, quiet } from "../../gateway/kit.ts";
import { endOf } from "../../kit/engine/engine.ts";

const MAIN = "agent:main:main";

/** Returns the record of a chain. */
export async function recordOfChain({ store }: House, chainId: string): Promise<ChainRecord> {
  const found = await readChainRecord(store.db, chainId);
  if (typeof found !== "object") throw new Error(`no record: ${found}`);
  return JSON.parse(recordText({ program: "test", ...found }).text) as ChainRecord;
}

/**
 * Sends a message to the main session, and returns the record of the chain after all work has ended. `ended` is
 * called after the first run.
 */
export async function recordOf(
  house: House,
  text: string,
  more: Partial<RunInput> = {},
  ended: () => void = () => {},
  request: Pick<AcceptRequest, "tokensLeft"> = {},
): Promise<ChainRecord> {
  const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text, ...more }, ...request });
  if (!accepted.ok) throw new Error(accepted.error);
  const { runId, chainId } = accepted.value.run;
  await endOf(house.engine, runId);
  ended();
  await quiet(house);
  return recordOfChain(house, chainId);
}
