// A2A with two gateways on one store: a task is the same at both.

import { TaskState } from "@a2a-js/sdk";
import { expect, test } from "vitest";
import { sharedWorld } from "../../../src/engine/cluster/shared-world.ts";
import { embeddedGround, type Ground } from "../../kit/engine/cluster.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import { mortalProcess } from "../../kit/engine/mortal-store.ts";
import type { House, Play } from "../kit.ts";
import { a2aClient, BINDINGS, openExposed, readStream, saying, taskIn, textsIn } from "./kit.ts";

async function member(ground: Ground, play: Play): Promise<House> {
  const world = quietWorld();
  const disk = await ground.open(world);
  const mortal = mortalProcess({ ...disk, close: async () => {} }, sharedWorld(disk, world));
  return openExposed({ disk: mortal.store, world: mortal.world, play });
}

test.each(BINDINGS)("%s: a task is followed, and its stream ends, at the other gateway", async (binding) => {
  const ground = await embeddedGround();
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const play: Play = async () => {
    begun.resolve();
    await released.promise;
    return "Done at last";
  };
  const [first, second] = [await member(ground, play), await member(ground, play)];
  const more = { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: true };
  const here = await a2aClient(first, { binding });
  const { id } = await taskIn(here.sendMessage({ ...saying("Take your time"), configuration: more }));
  await begun.promise;
  const there = await a2aClient(second, { binding });
  const following = there.resubscribeTask({ tenant: "", id });
  const stream = following[Symbol.asyncIterator]();
  expect((await stream.next()).value?.payload).toMatchObject({ $case: "task", value: { id } });
  released.resolve();
  const { end, text } = await readStream({ [Symbol.asyncIterator]: () => stream });
  expect(end?.state).toBe(TaskState.TASK_STATE_COMPLETED);
  expect(text).toBe("Done at last");
  expect(textsIn(await there.getTask({ tenant: "", id }))).toEqual(["Done at last"]);
});
