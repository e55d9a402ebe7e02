// C4: work of other connections runs between two reads of one connection.

import { expect, test } from "vitest";
import { realWorld } from "../../../src/world.ts";
import { openHouse } from "../kit.ts";

test("C4: other work runs between two reads of one connection, and between two previews of one read", async () => {
  let turns = 0;
  const gather = async (): Promise<void> => {
    turns += 1;
  };
  const house = await openHouse({ world: { ...realWorld({ level: "silent" }), gather } });
  const client = await house.client();
  const before = turns;
  const ask = () => client.request("sessions.preview", { keys: ["main", "agent:main:main", "nobody"] });
  await Promise.all([ask(), ask(), ask(), ask()]);
  expect(turns - before).toBeGreaterThanOrEqual(16);
});
