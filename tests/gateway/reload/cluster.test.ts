// Gateways that share a store and follow one configuration each.

import { expect, test } from "vitest";
import { cleanup } from "../../kit/engine/engine.ts";
import { startModelServer } from "../../kit/model-server/server.ts";
import { takeSchema } from "../../kit/store/postgres.ts";
import { until } from "../../kit/until.ts";
import { openWith } from "./kit.ts";

test("each process shows the revision of the configuration that it runs", async () => {
  const schema = await takeSchema();
  const model = await startModelServer(() => "an answer");
  cleanup(async () => {
    await model.close();
    await schema.give();
  });
  const store = { store: { postgresUrl: schema.url } };
  const two = { ...store, agents: { defaults: { model: "local/two" } } };
  const [first, second] = [await openWith(model, store), await openWith(model, store)];
  const revisions = async () => {
    const { processes = [], processId } = await first.client.request("status", {});
    const own = processes.find((one) => one.processId === processId);
    const other = processes.find((one) => one.processId !== processId);
    return { count: processes.length, own: own?.configRevision, other: other?.configRevision };
  };
  const begun = await revisions();
  expect(begun).toEqual({ count: 2, own: expect.stringMatching(/^[0-9a-f]{12}$/), other: begun.own });

  first.put(two);
  first.reload();
  await until(async () => (await revisions()).own !== begun.own);
  const { own } = await revisions();
  expect(await revisions()).toEqual({ count: 2, own, other: begun.own });
  second.put(two);
  second.reload();
  await until(async () => (await revisions()).other === own);

  // A broken file keeps the revision. Secrets, the address and what waits for a restart do not count.
  const broken = second.told.length;
  second.put({ ...two, agents: { list: "none" } });
  second.reload();
  await until(() => second.told.length > broken);
  const searching = (apiKey: string) => ({ ...two, tools: { search: { provider: "brave", apiKey } } });
  first.put(searching("the-key-of-the-first"));
  first.reload();
  await until(async () => (await revisions()).own !== own);
  const newest = (await revisions()).own;
  expect((await revisions()).other).toBe(own);
  const gateway = { port: 7300, auth: { token: "another-token-of-the-second" } };
  second.put({ ...searching("the-key-of-the-second"), gateway, session: { mainKey: "lobby" } });
  second.reload();
  await until(async () => (await revisions()).other === newest);
});

test("processes that share one file converge without a restart, also over a file with problems", async () => {
  const schema = await takeSchema();
  const model = await startModelServer(({ model }) => `done by ${model}`);
  cleanup(async () => {
    await model.close();
    await schema.give();
  });
  const store = { store: { postgresUrl: schema.url } };
  const first = await openWith(model, store);
  const second = await openWith(model, store, { home: first.home });
  const revisions = async (): Promise<(string | undefined)[]> => {
    const { processes = [] } = await first.client.request("status", {});
    return [...new Set(processes.map(({ configRevision }) => configRevision))];
  };
  const [begun] = await revisions();
  const change = { agents: { defaults: { model: "local/two" } } };
  const saved = await first.client.request("config.get", {});
  const patch = {
    changes: [{ path: "agents.defaults.model", value: "local/two" }],
    revision: saved.revision,
  };
  await first.client.request("config.patch", patch);
  await until(async () => {
    const now = await revisions();
    return now.length === 1 && now[0] !== begun;
  });
  expect([await first.says("hello"), await second.says("hello")]).toEqual(["done by two", "done by two"]);
  const [converged] = await revisions();
  second.put({ ...store, ...change, agents: { list: "none" } });
  await until(() => [first, second].every(({ told }) => told.some((event) => !event.ok)));
  expect(await revisions()).toEqual([converged]);
  second.put(store);
  await until(async () => (await revisions()).join() === begun);
  expect([await first.says("hello"), await second.says("hello")]).toEqual(["done by one", "done by one"]);
});
