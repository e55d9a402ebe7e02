// A2A with two gateways on one store: a task is the same at both.

import { TaskState } from "@a2a-js/sdk";
import type { Client } from "@a2a-js/sdk/client";
import { expect } from "vitest";
import { sharedWorld } from "../../../src/engine/cluster/shared-world.ts";
import {
  a2aClient,
  BINDINGS,
  openExposed,
  readStream,
  saying,
  taskIn,
  textsIn,
} from "../../gateway/clients/a2a.ts";
import { heldPlay } from "../../gateway/clients/openai.ts";
import type { Play } from "../../gateway/kit.ts";
import { test } from "../../kit/deep.ts";
import { embeddedGround, type Ground } from "../../kit/engine/cluster.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import { mortalProcess } from "../../kit/engine/mortal-store.ts";

async function member(ground: Ground, play: Play, more: { dies?: boolean } = {}) {
  const world = quietWorld();
  const disk = await ground.open(world);
  const mortal = mortalProcess({ ...disk, close: async () => {} }, sharedWorld(disk, world));
  const house = await openExposed({ disk: mortal.store, world: mortal.world, play, ...more });
  return { house, die: mortal.die };
}

/** Sends a message, and returns the id of its task at once. */
async function begin(client: Client): Promise<string> {
  const more = { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: true };
  return (await taskIn(client.sendMessage({ ...saying("Take your time"), configuration: more }))).id;
}

/** Follows a task. `rest`: the events after the task itself. */
async function follow(client: Client, id: string) {
  const stream = client.resubscribeTask({ tenant: "", id })[Symbol.asyncIterator]();
  expect((await stream.next()).value?.payload).toMatchObject({ $case: "task", value: { id } });
  return { rest: () => readStream({ [Symbol.asyncIterator]: () => stream }) };
}

test.each(BINDINGS)("%s: a task is followed, and its stream ends, at the other gateway", async (binding) => {
  const ground = await embeddedGround();
  const held = heldPlay();
  const { house: first } = await member(ground, held.play);
  const { house: second } = await member(ground, held.play);
  const id = await begin(await a2aClient(first, { binding }));
  await held.begun;
  const there = await a2aClient(second, { binding });
  const { rest } = await follow(there, id);
  held.end("Done at last");
  const { end, text } = await rest();
  expect(end?.state).toBe(TaskState.TASK_STATE_COMPLETED);
  expect(text).toBe("Done at last");
  expect(textsIn(await there.getTask({ tenant: "", id }))).toEqual(["Done at last"]);
});

test.deep(
  "AO3: if the gateway of a task dies, the stream at the other gateway ends with the answer of the latter",
  async () => {
    const ground = await embeddedGround();
    const held = heldPlay();
    const { house: first, die } = await member(ground, held.play, { dies: true });
    const { house: second } = await member(ground, () => "Done by the second");
    const id = await begin(await a2aClient(first));
    await held.begun;
    const { rest } = await follow(await a2aClient(second), id);
    die();
    const { end, text } = await rest();
    expect(end?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(text).toBe("Done by the second");
  },
);
