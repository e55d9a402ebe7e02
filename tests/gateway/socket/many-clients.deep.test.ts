// Many clients that connect at the same moment: each is served.

import { expect, test } from "vitest";
import { startProcess } from "../../kit/process/gateway-process.ts";

const CLIENTS = 500;

test(`${CLIENTS} clients that connect at once each get their hello and an answer, and none is disconnected`, async () => {
  const gateway = await startProcess();
  const served = await Promise.allSettled(
    Array.from({ length: CLIENTS }, async () => {
      const client = await gateway.connect();
      const { ok } = await client.request("health");
      return ok;
    }),
  );
  const failures = served.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : []));
  expect(failures).toEqual([]);
  expect(served).toEqual(Array.from({ length: CLIENTS }, () => ({ status: "fulfilled", value: true })));
});
