// Tries each capability with the servers of each dialect, through the doors of a running gateway.

import { beforeAll, describe, test } from "vitest";
import { forFile } from "../../kit/cleanup.ts";
import { CAPABILITIES } from "../../kit/dialects/capabilities.ts";
import { DIALECTS } from "../../kit/dialects/dialects.ts";
import { type Ground, openDialects } from "../../kit/dialects/ground.ts";

let ground: Ground;
beforeAll(async () => {
  const models = CAPABILITIES.map(({ id }) => id);
  ground = await forFile(() => openDialects(DIALECTS, models));
});

describe.each(DIALECTS)("$name", (dialect) => {
  const wanted = CAPABILITIES.filter((one) => one.isFor(dialect));
  test.concurrent.each(wanted)("$id: $proves", async (capability) => {
    await capability.try(ground, dialect);
  });
});
