// Many idempotency keys, each used at two gateways of one store at the same moment.

import { keysContract } from "./kit.ts";

keysContract(100);
