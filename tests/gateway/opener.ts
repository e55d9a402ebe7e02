// Opens gateways one after another on one store, of either kind.

import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { emptyUrl } from "../store/transfer/moves.ts";
import { type House, type HouseOptions, openHouse } from "./kit.ts";

/**
 * Returns a function that opens a gateway, on an embedded store or on PostgreSQL. Each call simulates a
 * restart.
 */
export async function openerOf(kind: string): Promise<(options?: HouseOptions) => Promise<House>> {
  const dir = temporaryFolder();
  const url = kind === "PostgreSQL" ? await emptyUrl() : undefined;
  return async (options = {}) => {
    const disk = url === undefined ? {} : { disk: await openPostgres({ url, world: quietWorld() }) };
    return openHouse({ dir, ...disk, ...options });
  };
}
