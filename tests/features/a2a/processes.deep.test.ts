// Two real gateways on one PostgreSQL. The gateway that works on a task is killed, and the official client follows
// the task at the other one.

import { TaskState } from "@a2a-js/sdk";
import { expect, test } from "vitest";
import {
  a2aClient,
  addressOf,
  asking,
  BINDINGS,
  receiver,
  saying,
  taskIn,
  textsIn,
} from "../../gateway/clients/a2a.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { startModelServer } from "../../kit/model-server/server.ts";
import { hang } from "../../kit/model-server/steps.ts";
import { type GatewayProcess, startProcess } from "../../kit/process/gateway-process.ts";
import { STORES } from "../../kit/process/grounds.ts";

const newStore = STORES.find(([name]) => name === "PostgreSQL")?.[1];

test.each(BINDINGS)(
  "%s: a task of a gateway that is killed ends at the other one, and its client is notified once",
  async (binding) => {
    const begun = Promise.withResolvers<void>();
    const server = await startModelServer(() => {
      if (server.requests.length > 1) return "Done by the other one";
      begun.resolve();
      return [hang()];
    });
    cleanup(() => server.close());
    const { id: _, ...provider } = server.provider("openai-completions");
    const { got, host, url } = await receiver();
    const config = {
      ...(await newStore?.()),
      models: { providers: { one: provider } },
      agents: { defaults: { model: "one/test-model" }, list: [{ id: "main" }, { id: "research" }] },
      a2a: { expose: ["research"], notifyHosts: [host] },
    };
    const [first, second] = [await startProcess({ config }), await startProcess({ config })];
    const clientOf = ({ httpUrl, token }: GatewayProcess) => a2aClient({ http: httpUrl }, { binding, token });
    const [here, there] = [await clientOf(first), await clientOf(second)];
    const message = { ...saying("Take your time"), configuration: asking(addressOf(url)) };
    const { id } = await taskIn(here.sendMessage(message));
    await begun.promise;
    const following = there.resubscribeTask({ tenant: "", id })[Symbol.asyncIterator]();
    expect((await following.next()).value?.payload).toMatchObject({ $case: "task", value: { id } });
    await first.end("SIGKILL");
    let last: unknown;
    for (let next = await following.next(); next.done !== true; next = await following.next())
      last = next.value.payload;
    const completed = { state: TaskState.TASK_STATE_COMPLETED };
    expect(last).toMatchObject({ $case: "statusUpdate", value: { taskId: id, status: completed } });
    expect(textsIn(await there.getTask({ tenant: "", id }))).toEqual(["Done by the other one"]);
    await expect.poll(() => got.length).toBe(1);
    const client = await second.connect();
    const unsent = async () =>
      (await client.request("deliveries.list", {})).deliveries.filter(({ state }) => state !== "sent");
    await expect.poll(unsent).toEqual([]);
    expect(got).toMatchObject([
      { body: { statusUpdate: { taskId: id, status: { state: "TASK_STATE_COMPLETED" } } } },
    ]);
  },
);
