// Many idempotency keys, each at two gateways of one store at the same moment.

import { keysContract } from "./kit.ts";

keysContract(100);
