// Owns the params of the methods about chains: who talked to whom, along time.

import { count, flag, name, object, READ } from "./shapes.ts";

export const CHAIN_PARAMS = {
  "chains.list": {
    scope: READ,
    params: object(
      { activeMinutes: count(1), sessionKey: name, includeSingle: flag, limit: count(1), cursor: name },
      [],
    ),
    ignored: [],
  },
  "chains.get": {
    scope: READ,
    params: object({ chainId: name }, ["chainId"]),
    ignored: [],
  },
} as const;
