// A whole gateway whose configuration file changes while it runs.

import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { call } from "../../kit/model-server/steps.ts";
import { until } from "../../kit/until.ts";
import { fileOf, type Json, openFollowing } from "./kit.ts";

test("a run keeps its settings, and the next run has the new ones", async () => {
  const asked = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const house = await openFollowing(async (request) => {
    if (request.toolResults.length > 0) return `done by ${request.model}`;
    asked.resolve();
    await go.promise;
    return [call("session_status")];
  });
  const first = house.says("hello");
  await asked.promise;
  house.put({ agents: { defaults: { model: "local/two" } } });
  house.reload();
  go.resolve();
  expect(await first).toBe("done by one");
  expect(await house.says("hello again")).toBe("done by two");
  await until(() => house.told.length > 0);
  expect(house.told[0]).toEqual({ ok: true, changed: ["agents.defaults.model"], restart: [] });
});

test("a client that saves the file reads the new settings with the next request", async () => {
  const { client } = await openFollowing(() => "unused");
  const modelOf = async () => (await client.request("agents.list", {})).agents[0]?.model;
  for (const model of ["local/two", "local/one", "local/two"]) {
    const { revision } = await client.request("config.get", {});
    const changes = [{ path: "agents.defaults.model", value: model }];
    await client.request("config.patch", { changes, revision });
    expect(await modelOf()).toBe(model);
  }
});

test("I13: a right that was narrowed is narrow at the next tool call of a run under way", async () => {
  const asked = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const house = await openFollowing(async (request) => {
    if (request.toolResults.length > 0) return request.toolResults.join("\n");
    asked.resolve();
    await go.promise;
    return [call("exec", { command: "echo it ran" }), call("read", { path: "a" })];
  });
  const answer = house.says("hello");
  await asked.promise;
  house.put({ agents: { defaults: { model: "local/one" } }, tools: { deny: ["exec"] } });
  house.reload();
  go.resolve();
  const told = await answer;
  expect(told).not.toContain("it ran");
  expect(told).toContain('"code":"tool_denied"');
  expect(told).toContain("tools.deny");
});

test("a right that was widened does not reach a run under way", async () => {
  const asked = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const house = await openFollowing(
    async (request) => {
      if (request.toolResults.length > 0) return request.toolResults.join("\n");
      asked.resolve();
      await go.promise;
      return [call("exec", { command: "echo it ran" })];
    },
    { tools: { deny: ["exec"] } },
  );
  const answer = house.says("hello");
  await asked.promise;
  house.put({});
  house.reload();
  go.resolve();
  expect(await answer).toContain('there is no tool \\"exec\\"');
  expect(await house.says("hello")).toContain("it ran");
});

test("a file with problems and a missing one keep the settings, and it is said", async () => {
  const house = await openFollowing(() => "an answer");
  const { config } = await house.client.request("status", {});
  expect(config).toEqual({ ok: true, differs: false, changed: [], restart: [] });
  const whole = readFileSync(house.path, "utf8");
  const broken = ['{ agents: { list: "none" } }', whole.slice(0, 80), undefined];
  for (const [index, text] of broken.entries()) {
    if (text === undefined) rmSync(house.path);
    else writeFileSync(house.path, text);
    house.reload();
    await until(() => house.told.length === index + 1);
    expect(house.told[index]).toEqual({ ok: false, changed: [], restart: [] });
    expect(await house.says("hello")).toBe("an answer");
  }
  const why = house.lines.filter(({ level }) => level === "error").map((line) => String(line.fields.why));
  expect(why).toHaveLength(3);
  expect(why[0]).toContain("agents.list");
  expect(why[2]).toContain("is missing");
});

test("an empty file means every default to a running gateway, too", async () => {
  const house = await openFollowing(() => "an answer", { tools: { deny: ["exec"] } });
  writeFileSync(house.path, "");
  house.reload();
  await until(() => house.told.length === 1);
  expect(house.told[0]).toMatchObject({ ok: true, changed: expect.arrayContaining(["tools"]) });
});

test("applies a change that was saved during the start", async () => {
  const two = { agents: { defaults: { model: "local/two" } } };
  const house = await openFollowing((request) => `done by ${request.model}`, {}, two);
  expect(await house.says("hello")).toBe("done by two");
});

test("names what needs a restart, and no secret", async () => {
  const house = await openFollowing(() => "an answer");
  const secret = "a-new-token-0123456789-0123456789";
  const gateway = { port: 7300, auth: { token: secret } };
  house.put({ gateway, nodes: { enabled: false }, agents: { defaults: { model: "local/two" } } });
  house.reload();
  await until(() => house.told.length > 0);
  expect(house.lines.filter(({ level }) => level === "error")).toEqual([]);
  expect(house.told[0]).toMatchObject({ ok: true, restart: ["gateway", "nodes.enabled"] });
  expect(house.told[0]?.changed).toEqual(expect.arrayContaining(["gateway.auth.token", "gateway.port"]));
  const { config } = await house.client.request("status", {});
  expect(config).toMatchObject({ differs: true, changed: ["gateway", "nodes"] });
  expect(JSON.stringify([house.told, house.lines])).not.toContain(secret);
});

test("follows a file that is saved, replaced and saved many times", async () => {
  const house = await openFollowing(() => "an answer");
  const models = async () => (await house.client.request("agents.list", {})).agents.map(({ id }) => id);
  const agents = (...ids: string[]): Json => ({
    agents: { defaults: { model: "local/one" }, list: ids.map((id) => ({ id })) },
  });
  house.put(agents("first"));
  await until(async () => (await models()).join() === "first");
  writeFileSync(`${house.path}.new`, fileOf(house.model.url, agents("first", "second")));
  renameSync(`${house.path}.new`, house.path);
  await until(async () => (await models()).join() === "first,second");
  for (let at = 0; at < 50; at += 1) house.put(agents(`agent-${at}`));
  await until(async () => (await models()).join() === "agent-49");
  expect(house.told.length).toBeLessThan(20);
  await until(async () => {
    const { sessions } = await house.client.request("sessions.list", {});
    return sessions.some(({ key }) => key === "agent:agent-49:main");
  });
});
