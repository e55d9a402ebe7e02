// Gateways that share a store and follow one configuration each.

import { expect, test } from "vitest";
import { cleanup } from "../../kit/engine/engine.ts";
import { startModelServer } from "../../kit/model-server/server.ts";
import { takeSchema } from "../../kit/store/postgres.ts";
import { until } from "../../kit/until.ts";
import { openWith } from "./kit.ts";

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
