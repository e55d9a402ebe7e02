// MCP clients from both official libraries, on older revisions and on the newest, with a real gateway over
// HTTP.

import { expect, test } from "vitest";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import { heldModel, openPeer, REVISION_OF, SPEAKERS, sendAs, written } from "../../gateway/clients/mcp.ts";
import { openHouse } from "../../gateway/kit.ts";
import { until } from "../../kit/until.ts";

const OPEN = {
  visibility: "all" as const,
  agentToAgent: { enabled: true, allow: [] },
};

test.each(SPEAKERS)(
  "%s: a client gets the session tools and its inbox, but no tools for files or programs",
  async (speaker) => {
    const house = await openHouse();
    const peer = await openPeer(house, speaker);
    expect(peer.revision).toBe(REVISION_OF[speaker]);
    const names = await peer.tools();
    expect(names).toEqual(
      expect.arrayContaining([
        "sessions_list",
        "sessions_history",
        "sessions_send",
        "sessions_spawn",
        "sessions_inbox",
      ]),
    );
    expect(names).not.toContain("exec");
    expect(names).not.toContain("read");
    expect(await peer.call("exec", { command: "id" })).toMatchObject({
      status: "error",
      code: "unknown_tool",
    });
  },
);

test("a client with a name of the person's choice has both names: windows of one program are told apart", async () => {
  const house = await openHouse({ choices: { tools: OPEN } });
  const client = await house.client();
  for (const handle of ["writer", "writer.2", "claude-code-shop"]) {
    const headers = { "x-parley-handle": handle };
    await (await openPeer(house, SPEAKERS[0], { name: "claude-code", headers })).tools();
  }
  const { sessions } = await client.request("sessions.list", { search: "claude-code" });
  expect(sessions.map(({ key, label }) => [key, label]).sort()).toEqual([
    ["agent:main:mcp:claude-code-shop", "claude-code-shop"],
    ["agent:main:mcp:writer", "writer (claude-code)"],
    ["agent:main:mcp:writer.2", "writer.2 (claude-code)"],
  ]);
});

test.each(SPEAKERS)(
  "%s: a client is a session with the client's name, and the client's messages are in its transcript",
  async (speaker) => {
    const house = await openHouse({ choices: { tools: OPEN } });
    const peer = await openPeer(house, speaker, { name: "My Editor" });
    const key = "agent:main:mcp:my-editor";
    const sent = await peer.call("sessions_send", {
      sessionKey: "agent:research:main",
      message: "what is new?",
    });
    expect(sent).toMatchObject({
      status: "ok",
      reply: "echo what is new?",
      sessionKey: "agent:research:main",
    });

    const other = await openPeer(house, speaker, { name: "another" });
    const { sessions } = (await other.call("sessions_list", { search: "My Editor" })) as {
      sessions: unknown[];
    };
    expect(sessions).toMatchObject([{ key, label: "My Editor", kind: "other", agentId: "main" }]);
    const history = await other.call("sessions_history", { sessionKey: key });
    expect(history).toMatchObject({
      messages: [
        { role: "assistant", content: [{ type: "text", text: "[to agent:research:main]\n\nwhat is new?" }] },
      ],
    });
    const asked = await other.call("sessions_history", { sessionKey: "agent:research:main" });
    expect(asked).toMatchObject({
      messages: [
        { role: "user", provenance: { kind: "inter_session", sourceSessionKey: key, hop: 1 } },
        { role: "assistant" },
      ],
    });
  },
);

test.each(SPEAKERS)(
  "%s: a message to a client waits in its inbox, and the client gets a notification",
  async (speaker) => {
    const house = await openHouse({ choices: { tools: OPEN } });
    const peer = await openPeer(house, speaker, { headers: { "x-parley-handle": "desk" } });
    const key = "agent:main:mcp:desk";
    expect(await peer.call("sessions_inbox")).toEqual({
      sessionKey: key,
      count: 0,
      messages: [],
      more: false,
    });
    const heard = Promise.withResolvers<void>();
    await peer.subscribe(heard.resolve);

    const first = await sendAs(house, "agent:research:main", key, "one");
    expect(first).toMatchObject({ status: "accepted", delivery: { mode: "inbox" } });
    expect(first).not.toHaveProperty("reply");
    await heard.promise;
    await sendAs(house, "agent:research:main", key, "two");

    const inbox = await peer.call("sessions_inbox");
    expect(inbox).toMatchObject({
      count: 2,
      more: false,
      messages: [
        { from: "agent:research:main", kind: "inter_session", text: "one", at: expect.any(Number) },
        { text: "two" },
      ],
    });
    expect(await peer.read("parley://inbox")).toEqual(inbox);
    const { messages } = inbox as { messages: { id: string }[] };
    const later = await peer.call("sessions_inbox", { after: messages[0]?.id, limit: 1 });
    expect(later).toMatchObject({ messages: [{ text: "two" }], nextAfter: messages[1]?.id, more: false });
    expect(await peer.call("sessions_inbox", { after: messages[1]?.id })).toMatchObject({
      count: 0,
      nextAfter: messages[1]?.id,
    });
    expect(await peer.call("sessions_inbox", { after: "nobody" })).toMatchObject({
      code: "message_not_found",
    });
  },
);

test.each(SPEAKERS)(
  "%s: a sender with a timeout waits for the client's answer, and gets it as the reply",
  async (speaker) => {
    const house = await openHouse({ choices: { tools: OPEN } });
    const peer = await openPeer(house, speaker, { headers: { "x-parley-handle": "desk" } });
    const asker = "agent:research:main";
    const key = "agent:main:mcp:desk";
    await peer.call("sessions_inbox");
    const came = written(house, key);
    const waiting = sendAs(house, asker, key, "which port?", 600);
    await came;
    const sent = await peer.call("sessions_send", { sessionKey: asker, message: "port 80" });
    expect(sent).toMatchObject({
      status: "accepted",
      note: expect.stringContaining("has received it"),
      delivery: { status: "skipped" },
    });
    const got = await waiting;
    expect(got).toMatchObject({ status: "ok", reply: "port 80", delivery: { mode: "inbox" } });
    const chainId = (await getRun(house.store.db, String(got.runId)))?.chainId ?? "";
    const { steps } = await (await house.client()).request("chains.get", { chainId });
    expect(steps.map(({ kind, from, to, state }) => `${kind} ${from}>${to} ${state}`)).toEqual([
      `send ${asker}>${key} ok`,
      `wait ${asker}>${key} answered`,
      `send ${key}>${asker} ok`,
    ]);
    expect(steps[1]?.endAt).toBe(steps[2]?.at);
    expect(await peer.call("sessions_send", { sessionKey: asker, message: "and 443" })).toMatchObject({
      status: "ok",
      reply: "echo and 443",
    });
  },
);

test.each(SPEAKERS)(
  "%s: a client that waited for another client's answer gets no additional notice about it",
  async (speaker) => {
    const house = await openHouse({ choices: { tools: OPEN } });
    const asker = await openPeer(house, speaker, { headers: { "x-parley-handle": "asker" } });
    const reader = await openPeer(house, speaker, { headers: { "x-parley-handle": "reader" } });
    await asker.call("sessions_inbox");
    await reader.call("sessions_inbox");
    const came = written(house, "agent:main:mcp:reader");
    const waiting = asker.call("sessions_send", {
      sessionKey: "agent:main:mcp:reader",
      message: "ready?",
      timeoutSeconds: 600,
    });
    await came;
    await reader.call("sessions_send", { sessionKey: "agent:main:mcp:asker", message: "yes" });
    expect(await waiting).toMatchObject({ status: "ok", reply: "yes" });
    expect(await asker.call("sessions_inbox")).toMatchObject({ count: 0 });
  },
);

test("I7: a client can wait neither for itself nor for a session that waits for it", async () => {
  const house = await openHouse({ choices: { tools: OPEN } });
  const who = { headers: { "x-parley-handle": "desk" } };
  const peer = await openPeer(house, "version 1", who);
  const key = "agent:main:mcp:desk";
  await peer.call("sessions_inbox");
  expect(await peer.call("sessions_send", { sessionKey: key, message: "me" })).toMatchObject({
    code: "wait_cycle",
    cycle: [key, key],
  });
  expect(await peer.call("sessions_inbox")).toMatchObject({ count: 0 });
});

test.each(SPEAKERS)(
  "%s: sessions_inbox with a `limit` can page through all messages, in both directions",
  async (speaker) => {
    const house = await openHouse({ choices: { tools: OPEN } });
    const peer = await openPeer(house, speaker, { headers: { "x-parley-handle": "desk" } });
    const sent = ["one", "two", "three", "four", "five"];
    for (const text of sent) await sendAs(house, "agent:research:main", "agent:main:mcp:desk", text);
    interface Page {
      readonly messages: readonly { readonly text: string }[];
      readonly nextBefore?: string;
      readonly nextAfter?: string;
      readonly more: boolean;
    }
    const read = async (place: object) =>
      (await peer.call("sessions_inbox", { limit: 2, ...place })) as unknown as Page;
    const texts = (page: Page) => page.messages.map(({ text }) => text);

    const newest = await read({});
    expect([texts(newest), newest.more]).toEqual([["four", "five"], false]);
    const middle = await read({ before: newest.nextBefore });
    expect([texts(middle), middle.more]).toEqual([["two", "three"], true]);
    const first = await read({ before: middle.nextBefore });
    expect([texts(first), first.nextBefore, first.more]).toEqual([["one"], undefined, true]);

    const second = await read({ after: first.nextAfter });
    expect([texts(second), second.more]).toEqual([["two", "three"], true]);
    expect(texts(await read({ before: second.nextBefore }))).toEqual(["one"]);
    const last = await read({ after: second.nextAfter });
    expect([texts(last), last.more]).toEqual([["four", "five"], false]);
    expect(await read({ after: last.nextAfter })).toMatchObject({ messages: [], more: false });
    expect(await read({ after: last.nextAfter, before: last.nextBefore })).toMatchObject({
      code: "invalid_argument",
    });
  },
);

test.each(SPEAKERS)("%s: cancelling a call ends the wait, not the run", async (speaker) => {
  const model = heldModel();
  const house = await openHouse({ play: model.play });
  const peer = await openPeer(house, speaker, { headers: { "x-parley-handle": "hasty" } });
  const cancel = new AbortController();
  const lost = peer.call(
    "sessions_send",
    { sessionKey: "main", message: "long work", timeoutSeconds: 600 },
    { signal: cancel.signal },
  );
  const failed = expect(lost).rejects.toThrow();
  await model.started;
  const gaveUp = waitEnds(house);
  cancel.abort("changed my mind");
  await failed;
  await gaveUp;
  const told = written(house, "agent:main:mcp:hasty");
  model.answer("done all the same");
  await told;
  expect(await peer.call("sessions_inbox")).toMatchObject({
    messages: [{ kind: "notice", text: expect.stringContaining("done all the same") }],
  });
});

/** Resolves when no caller waits for a run. */
async function waitEnds({ store }: Awaited<ReturnType<typeof openHouse>>): Promise<void> {
  const open = store.db.selectFrom("waits").select("call_id").where("state", "=", "open");
  await until(async () => (await open.execute()).length === 0);
}
