// Servers that violate MCP: the results that a session gets. The gateway survives all of them. The servers
// are real processes, and the clock is fake if time matters.

import { expect } from "vitest";
import { test } from "../kit/deep.ts";
import { cleanup, quietWorld } from "../kit/engine/engine.ts";
import { until } from "../kit/until.ts";
import { fakeWorld, settableWorld } from "../kit/world.ts";
import { MAIN_CHAIN } from "./app.ts";
import { badServer, mcpWith, nodeServer, openOutside, openWitness } from "./mcp-kit.ts";

const schema = { type: "object", properties: {} };
const tool = (name: string, more: Record<string, unknown> = {}) => ({ name, inputSchema: schema, ...more });
const readOnly = { annotations: { readOnlyHint: true } };

test.deep(
  "if a server dies during a call, the call's outcome is unknown, and it is not repeated",
  async () => {
    const witness = await openWitness();
    const world = fakeWorld();
    const bad = badServer("bad", { witness: witness.port, tools: [tool("die"), tool("hello")] });
    const outside = openOutside(mcpWith([bad]), world);
    const result = await outside.call("mcp__bad__die");
    expect(result).toMatchObject({ status: "error", code: "outcome_unknown" });
    expect(result.hint).toContain("check before you repeat it");
    await witness.life(0);
    expect(witness.lives.length).toBe(1);
    // The next call waits until the pause is over, and finds the program running.
    const next = outside.call("mcp__bad__hello");
    await world.timerWithin(2_000);
    await world.advance(2_000);
    expect(await next).toMatchObject({ status: "ok" });
    await witness.life(1);
    expect(witness.lives.length).toBe(2);
  },
);

test.each([
  ["readOnlyHint", { readOnlyHint: true }],
  ["idempotentHint", { idempotentHint: true }],
])(
  "if a server dies during a call that may be repeated (%s), the call is repeated",
  async (_hint, annotations) => {
    const witness = await openWitness();
    const bad = badServer("bad", { witness: witness.port, tools: [tool("die-once", { annotations })] });
    const outside = openOutside(mcpWith([bad]), quietWorld());
    const result = outside.call("mcp__bad__die-once");
    await witness.saw("call die-once");
    (await witness.life(0)).socket.write("die\n");
    await witness.saw("call die-once", 2);
    (await witness.life(1)).socket.write("live\n");
    expect(await result).toEqual({ status: "ok", text: "answered at last" });
  },
);

test.deep("a call is repeated only once, even if the server dies each time", async () => {
  const witness = await openWitness();
  const bad = badServer("bad", { witness: witness.port, tools: [tool("read-and-die", readOnly)] });
  const result = await openOutside(mcpWith([bad]), quietWorld()).call("mcp__bad__read-and-die");
  expect(result).toMatchObject({ status: "error", code: "outcome_unknown" });
  await witness.life(1);
  expect(witness.lives.length).toBe(2);
});

test("a call without an answer in time fails; the call is cancelled, and the server keeps running", async () => {
  const witness = await openWitness();
  const world = fakeWorld();
  const tools = [tool("silent", readOnly), tool("hello")];
  const bad = badServer("bad", { witness: witness.port, tools }, { timeoutSeconds: 7 });
  const outside = openOutside(mcpWith([bad]), world);
  await outside.set();
  const result = outside.call("mcp__bad__silent");
  await witness.saw("call silent");
  await world.advance(7_000);
  expect(await result).toMatchObject({ status: "error", code: "mcp_timeout" });
  expect((await result).error).toContain("within 7 s");
  await witness.saw("cancelled");
  expect(await outside.call("mcp__bad__hello")).toMatchObject({ status: "ok" });
  await witness.life(0);
  expect(witness.lives.length).toBe(1);
});

test("if a run is aborted, its call is also cancelled at the server", async () => {
  const witness = await openWitness();
  const bad = badServer("bad", { witness: witness.port, tools: [tool("silent")] });
  const outside = openOutside(mcpWith([bad]), quietWorld());
  const aborting = new AbortController();
  const result = outside.call("mcp__bad__silent", {}, aborting.signal);
  await witness.saw("call silent");
  aborting.abort();
  expect(await result).toMatchObject({ code: "run_aborted" });
  await witness.saw("cancelled");
});

test("invalid lines on stdout and a flood on stderr are ignored", async () => {
  const witness = await openWitness();
  const world = fakeWorld();
  const noise = ["Welcome!", "{not json", '{"jsonrpc":"1.0"}', '"text"', "null", ""];
  const bad = badServer("bad", {
    witness: witness.port,
    tools: [tool("hello")],
    noise,
    flood: 8 * 1024 * 1024,
  });
  const outside = openOutside(mcpWith([bad]), world);
  expect(await outside.call("mcp__bad__hello")).toMatchObject({ status: "ok" });
  const told = world.logged.filter(({ text }) => text.includes("is not a message"));
  expect(told.length).toBe(1);
});

test("a changed list of tools applies to the next run", async () => {
  const witness = await openWitness();
  const deeds = { witness: witness.port, tools: [tool("change")], toolsLater: [tool("newcomer")] };
  const outside = openOutside(mcpWith([badServer("bad", deeds)]), quietWorld());
  expect((await outside.set()).tools.map(({ spec }) => spec.name)).toEqual(["mcp__bad__change"]);
  await outside.call("mcp__bad__change");
  expect((await outside.set()).tools.map(({ spec }) => spec.name)).toEqual(["mcp__bad__newcomer"]);
  expect(outside.knownNames()).toEqual(["mcp__bad__newcomer"]);
});

test.each([true, false])(
  "an answer that is too large is dropped, and its server keeps running (id first: %s)",
  async (idFirst) => {
    const witness = await openWitness();
    const bad = badServer("bad", {
      witness: witness.port,
      tools: [tool("giant"), tool("values"), tool("hello")],
    });
    const outside = openOutside(mcpWith([bad], { maxResultBytes: 1_000 }), quietWorld());
    const giant = await outside.call("mcp__bad__giant", { bytes: 30_000_000, idFirst });
    expect(giant).toMatchObject({ status: "error", code: "mcp_failed" });
    expect(giant.error).toContain("dropped");
    const large = await outside.call("mcp__bad__giant", { bytes: 200_000, idFirst });
    expect(large).toEqual({
      status: "ok",
      text: "x".repeat(1_000),
      truncated: "the first 1000 of 200000 bytes",
    });
    const values = await outside.call("mcp__bad__values");
    expect(values.error).toContain(
      "the JSON has more than 250000 values: send less at once, and was dropped",
    );
    expect(await outside.call("mcp__bad__hello")).toMatchObject({ status: "ok" });
    await witness.life(0);
    expect(witness.lives.length).toBe(1);
  },
);

test("an invalid entry in a list of tools is omitted with a log line, and the other entries are kept", async () => {
  const witness = await openWitness();
  const world = fakeWorld();
  const broken = [
    null,
    7,
    { inputSchema: schema },
    { name: "", inputSchema: schema },
    { name: "array-schema", inputSchema: { type: "array" } },
    { name: "only-a-task", inputSchema: schema, execution: { taskSupport: "required" } },
    { name: "x".repeat(300), inputSchema: schema },
  ];
  const tools = [tool("first"), ...broken, tool("twice"), tool("twice", readOnly), tool("last")];
  const outside = openOutside(mcpWith([badServer("bad", { witness: witness.port, tools })]), world);
  const { tools: found, missing } = await outside.set();
  expect(found.map(({ spec }) => spec.name)).toEqual(
    ["first", "twice", "last"].map((name) => `mcp__bad__${name}`),
  );
  expect(missing).toEqual([]);
  const lines = world.logged.filter(({ text }) => text === "a tool of an MCP server is left out");
  expect(lines.length).toBe(broken.length + 1);
  expect(lines.map(({ fields }) => fields.why)).toContain('its schema is not of type "object"');
  // An invalid entry is reported once, not at every run.
  await outside.set();
  expect(world.logged.filter(({ text }) => text.includes("left out")).length).toBe(lines.length);
});

test("invalid names and endless or partly hidden descriptions of tools are cleaned", async () => {
  const witness = await openWitness();
  const hidden = "Adds.\u202e\u200b\u{e0041}\u0007 Safe.";
  const tools = [
    tool("a.b"),
    tool("a b"),
    tool("ümläut/🙂"),
    tool(`long-${"y".repeat(100)}`),
    tool("quiet", { description: hidden }),
    tool("talks", { description: "blah ".repeat(20_000) }),
  ];
  const outside = openOutside(mcpWith([badServer("bad", { witness: witness.port, tools })]), quietWorld());
  const { tools: found } = await outside.set();
  expect(found.length).toBe(tools.length);
  for (const { spec } of found) expect(spec.name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  expect(new Set(found.map(({ spec }) => spec.name)).size).toBe(tools.length);
  expect(found[4]?.spec.description).toBe('[from the MCP server "bad"] Adds. Safe.');
  expect(found[5]?.spec.description.length).toBeLessThan(2_100);
  // The gateway calls the tool by its original name.
  const name = found[2]?.spec.name ?? "";
  expect((await outside.call(name)).text).toContain("ümläut/🙂");
});

test("a result names content that it can't contain in a note, and other data is not mistaken for a picture", async () => {
  const witness = await openWitness();
  const outside = openOutside(
    mcpWith([badServer("bad", { witness: witness.port, tools: [tool("content")] })]),
    quietWorld(),
  );
  const give = (result: unknown) => outside.call("mcp__bad__content", { result });
  const content = [
    { type: "audio", data: "AAAA", mimeType: "audio/wav" },
    { type: "image", data: "AAAA", mimeType: "image/png" },
    { type: "hologram", data: 1 },
    { type: "resource", resource: { uri: "file:///a", mimeType: "application/zip", blob: "AAAA" } },
    { type: "resource_link", uri: "file:///b", name: "b" },
    { type: "text", text: "and text" },
    null,
  ];
  expect(await give({ content })).toEqual({
    status: "ok",
    text: "[link to resource file:///b] b\nand text",
    notShown: [
      "audio (audio/wav) of 3 bytes",
      "image (image/png) of 3 bytes: no PNG, JPEG, GIF or WebP",
      "content of the type hologram",
      "resource file:///a (application/zip) of 3 bytes",
      "content of the type ?",
    ],
  });
  expect(await give({ content: [{ type: "text", text: "no luck" }], isError: true })).toEqual({
    status: "error",
    code: "mcp_failed",
    error: "no luck",
  });
  expect(await give({ content: [], structuredContent: { a: [1] } })).toEqual({
    status: "ok",
    structured: { a: [1] },
  });
  let deep: unknown = 1;
  for (let depth = 0; depth < 3_000; depth++) deep = [deep];
  expect(await give({ content: [], structuredContent: { deep } })).toMatchObject({
    status: expect.any(String),
  });
  expect(await give({})).toEqual({ status: "ok", text: "" });
  expect(await give({ content: "text" })).toMatchObject({ status: "ok" });
  expect(await give(7)).toMatchObject({ status: "error", code: "mcp_failed" });
});

test("a run waits for a slow server, but not long, and learns which tools are missing; the next run has them", async () => {
  const witness = await openWitness();
  const world = fakeWorld();
  const slow = badServer("slow", { witness: witness.port, tools: [tool("hello")], slow: true });
  const fast = badServer("fast", { witness: witness.port, tools: [tool("hello")] });
  const outside = openOutside(mcpWith([slow, fast], { waitSeconds: 3 }), world);
  await outside.forSession(MAIN_CHAIN, new AbortController().signal, "mcp__fast__hello");
  const first = outside.set();
  await witness.life(1);
  await world.timerWithin(3_000);
  await world.advance(3_000);
  expect(await first).toMatchObject({
    tools: [{ spec: { name: "mcp__fast__hello" } }],
    missing: [{ server: "slow", why: "it is still starting" }],
  });
  for (const { socket } of witness.lives) socket.write("go\n");
  const second = await outside.set();
  expect(second.missing).toEqual([]);
  expect(second.tools.map(({ spec }) => spec.name)).toEqual(["mcp__slow__hello", "mcp__fast__hello"]);
});

test("a server that never answers is killed, and is started again after a pause", async () => {
  const witness = await openWitness();
  const world = fakeWorld();
  const mute = badServer("mute", { witness: witness.port, mute: true }, { startTimeoutSeconds: 5 });
  const outside = openOutside(mcpWith([mute], { waitSeconds: 0 }), world);
  for (const place of [0, 1]) {
    expect((await outside.set()).missing).toMatchObject([{ why: "it is still starting" }]);
    const life = await witness.life(place);
    await world.advance(5_000);
    await life.dead;
    expect((await outside.set()).missing).toMatchObject([
      { why: "it did not start: it was not ready after 5 s" },
    ]);
    await world.advance(4_000);
  }
});

test("pauses between failed starts grow to five minutes, and a server that no run needs is not started", async () => {
  const world = fakeWorld();
  const nobody = nodeServer("nobody", []);
  const reach = { ...nobody.reach, command: "parley-no-such-program" } as typeof nobody.reach;
  const outside = openOutside(mcpWith([{ ...nobody, reach }], { waitSeconds: 0 }), world);
  const starts = () => world.logged.filter(({ text }) => text === "an MCP server did not start").length;
  /** Waits until the next start has failed, and returns the number of seconds that it took. */
  const nextStart = async (stepMs: number): Promise<number> => {
    const before = starts();
    const fromMs = world.clock.now();
    for (;;) {
      const { missing } = await outside.set();
      if (missing[0]?.why === "it is still starting") break;
      await world.advance(stepMs);
    }
    while (starts() === before) await world.advance(0);
    return (world.clock.now() - fromMs) / 1_000;
  };
  await nextStart(1);
  const pauses: number[] = [];
  for (let start = 0; start < 12; start++) pauses.push(await nextStart(Math.min(2 ** start, 300) * 10));
  const grown = pauses.map((pause, at) => pause / Math.min(2 ** at, 300));
  expect(Math.min(...grown)).toBeGreaterThanOrEqual(0.75);
  expect(Math.max(...grown)).toBeLessThanOrEqual(1.26);
  await world.advance(3_600_000);
  expect(starts()).toBe(13);
});

test.each([
  ["back", -86_400_000],
  ["forward", 86_400_000],
])("a clock that is set %s does not change the pause after a failed start", async (_, stepMs) => {
  const { world, set } = settableWorld();
  const nobody = nodeServer("nobody", []);
  const reach = { ...nobody.reach, command: "parley-no-such-program" } as typeof nobody.reach;
  const outside = openOutside(mcpWith([{ ...nobody, reach }], { waitSeconds: 0 }), world);
  const starts = () => world.logged.filter(({ text }) => text === "an MCP server did not start").length;
  await outside.set();
  await until(() => starts() === 1);
  set(stepMs);
  const [status] = outside.statuses();
  const left = (status?.backoffUntil ?? 0) - world.clock.now();
  expect(left).toBeGreaterThanOrEqual(750);
  expect(left).toBeLessThanOrEqual(1_250);
  await world.advance(700);
  expect((await outside.set()).missing).toMatchObject([{ why: expect.stringContaining("did not start") }]);
  expect(starts()).toBe(1);
  await world.advance(600);
  expect(outside.statuses()[0]?.backoffUntil).toBeUndefined();
  expect((await outside.set()).missing).toMatchObject([{ why: "it is still starting" }]);
  await until(() => starts() === 2);
});

test("the reason for a failed start contains no secrets", async () => {
  const witness = await openWitness();
  const world = fakeWorld();
  const lastWords = "fatal: token sesame-open-7788 was refused";
  const env = { API_TOKEN: "sesame-open-7788" };
  const bad = badServer("bad", { witness: witness.port, lastWords });
  const reach = { ...bad.reach, env } as typeof bad.reach;
  const nobody = nodeServer("nobody", []);
  const missing = {
    ...nobody,
    reach: { ...nobody.reach, command: "parley-no-such-program" } as typeof nobody.reach,
  };
  const outside = openOutside(mcpWith([{ ...bad, reach }, missing]), world);
  const reports = await outside.inspect();
  expect(reports[0]).toMatchObject({ usable: false });
  expect(reports[0]?.text).toContain("before it had answered; it said: fatal: token [redacted] was refused");
  expect(reports[1]?.text).toContain("there is no program parley-no-such-program");
  expect(JSON.stringify([reports, world.logged])).not.toContain("sesame");
});

test("a server gets only its configured environment and a few paths, and its secrets are redacted in results", async () => {
  const witness = await openWitness();
  process.env.PARLEY_TEST_SECRET = "ours-alone-1234";
  cleanup(() => {
    delete process.env.PARLEY_TEST_SECRET;
  });
  const bad = badServer("bad", { witness: witness.port, tools: [tool("environment")] });
  const env = { FOLDER: "/some/folder", API_KEY: "sesame-open-7788" };
  const reach = { ...bad.reach, env } as typeof bad.reach;
  const { text } = await openOutside(mcpWith([{ ...bad, reach }]), quietWorld()).call(
    "mcp__bad__environment",
  );
  const got = JSON.parse(String(text)) as Record<string, string>;
  expect(got).toMatchObject({ FOLDER: "/some/folder", API_KEY: "[redacted]" });
  expect(Object.keys(got)).not.toContain("PARLEY_TEST_SECRET");
  expect(got.PATH).toBe(process.env.PATH);
});

test("a server with an older protocol version that exits during the new handshake is started again with the older one", async () => {
  const witness = await openWitness();
  const old = badServer("old", { witness: witness.port, tools: [tool("hello")], old: true });
  const outside = openOutside(mcpWith([old]), quietWorld());
  expect(await outside.call("mcp__old__hello")).toMatchObject({ status: "ok" });
  await witness.life(1);
  expect(witness.lives.length).toBe(2);
});

test("a stop ends a server that ignores the request to stop, and also the processes that the server started", async () => {
  const witness = await openWitness();
  const world = fakeWorld();
  const deeds = { witness: witness.port, tools: [tool("hello")], stubborn: true, helper: true };
  const outside = openOutside(mcpWith([badServer("bad", deeds)]), world);
  await outside.set();
  await witness.saw("helper");
  const closed = outside.close();
  await witness.saw("end of input");
  await world.advance(2_000);
  await witness.saw("SIGTERM");
  await world.advance(2_000);
  await closed;
  for (const { dead } of witness.lives) await dead;
  // After the stop no program is started.
  expect((await outside.set()).missing).toMatchObject([{ why: "the gateway is stopping" }]);
  await witness.life(1);
  expect(witness.lives.length).toBe(2);
});
