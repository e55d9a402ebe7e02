// Tests `parley mcp`: two official client libraries start the real command and use its standard streams, with
// and without a gateway.

import { StdioClientTransport as NewStdio } from "@modelcontextprotocol/client/stdio";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { expect, test } from "vitest";
import { call, makeHome, run, runJson, startGateway } from "../../../cli/kit.ts";
import {
  newPeer,
  oldPeer,
  type Peer,
  REVISION_OF,
  SPEAKERS,
  type Speaker,
} from "../../../gateway/clients/mcp.ts";
import { LAUNCHER } from "../../../kit/process/fleet.ts";

/** Returns the command and the environment with which a client starts it. */
function command(home: string, args: readonly string[]) {
  return {
    command: process.execPath,
    args: [LAUNCHER, "mcp", ...args],
    env: { PATH: process.env.PATH ?? "", HOME: home, PARLEY_LOG: "silent", PARLEY_LAUNCHED: "1" },
    stderr: "ignore" as const,
  };
}

async function start(home: string, speaker: Speaker, args: readonly string[] = []): Promise<Peer> {
  const how = command(home, args);
  if (speaker === "version 1") return oldPeer("Desk", new OldStdio(how));
  return newPeer("Desk", new NewStdio(how), speaker === "version 2, newest revision");
}

async function sendBack(
  home: string,
  to: string,
  message: string,
  timeoutSeconds = 0,
): Promise<Record<string, unknown>> {
  const args = JSON.stringify({ sessionKey: to, message, timeoutSeconds });
  return runJson(home, ["tool", "sessions_send", args, "--as", "agent:research:main"]);
}

test.each(SPEAKERS.filter((speaker) => speaker !== "version 2, older revision"))(
  "%s: a client of a running gateway sends, receives messages and notifications, and can reconnect",
  async (speaker) => {
    const { home } = await makeHome();
    const gateway = await startGateway(home);
    const peer = await start(home, speaker, ["--handle", "desk-1", "--agent", "ops"]);
    expect(peer.revision).toBe(REVISION_OF[speaker]);
    const key = "agent:ops:mcp:desk-1";
    expect(await peer.tools()).toContain("sessions_inbox");
    expect(
      await peer.call("sessions_send", { sessionKey: "agent:research:main", message: "say hello" }),
    ).toMatchObject({ status: "ok" });
    const heard = Promise.withResolvers<void>();
    await peer.subscribe(heard.resolve);
    const news =
      speaker === "version 2, newest revision" ? heard.promise : listening(home, key, heard.promise);
    expect(await sendBack(home, key, "hello desk")).toMatchObject({
      status: "accepted",
      delivery: { mode: "inbox" },
    });
    await news;
    expect(JSON.stringify(await peer.call("sessions_inbox"))).toContain("hello desk");
    const waiting = sendBack(home, key, "which port?", 600);
    const inbox = async () => JSON.stringify(await peer.call("sessions_inbox"));
    await expect.poll(inbox).toContain("which port?");
    const { messages } = (await peer.call("sessions_inbox")) as { messages: { id: string; text: string }[] };
    const inReplyTo = messages.find(({ text }) => text.includes("which port?"))?.id;
    await peer.call("sessions_send", { sessionKey: "agent:research:main", message: "port 80", inReplyTo });
    expect(await waiting).toMatchObject({ status: "ok", reply: "port 80" });
    await peer.close();

    const back = await start(home, speaker, ["--handle", "desk-1", "--agent", "ops"]);
    expect(JSON.stringify(await back.call("sessions_inbox"))).toContain("hello desk");
    // The gateway runs in another process, so it still runs after its clients have exited.
    expect(await runJson(home, ["sessions", "show", key])).toMatchObject({ key, label: "desk-1" });
    await back.close();
    await gateway.stop();
  },
);

/** Sends messages until one is announced, because notifications start some time after the connection. */
async function listening(home: string, key: string, heard: Promise<void>): Promise<void> {
  let done = false;
  void heard.then(() => {
    done = true;
  });
  for (let round = 0; !done && round < 50; round++) await sendBack(home, key, `are you there (${round})`);
  await heard;
}

test.each(["version 1"] as const)(
  "%s: if no gateway runs, the command starts one in its own process, and the next command uses that gateway",
  async (speaker) => {
    const { home } = await makeHome();
    const peer = await start(home, speaker);
    expect(await peer.call("sessions_send", { sessionKey: "main", message: "say hello" })).toMatchObject({
      status: "ok",
    });
    const second = await start(home, speaker, ["--handle", "second"]);
    const { sessions } = (await second.call("sessions_list")) as {
      sessions: { key: string; label?: string }[];
    };
    expect(sessions).toEqual(
      expect.arrayContaining([expect.objectContaining({ key: "agent:main:mcp:desk", label: "Desk" })]),
    );
    await second.close();
    expect(await peer.call("agents_list")).toMatchObject({ agents: expect.any(Array) });
    await peer.close();

    // When a client exits, its resources are released, and later messages still arrive.
    const third = await start(home, speaker);
    expect(
      JSON.stringify(await third.call("sessions_history", { sessionKey: "agent:main:mcp:desk" })),
    ).toContain("say hello");
  },
);

test("--session: the command acts for that session, with its rights", async () => {
  const { home } = await makeHome({ tools: {} });
  await startGateway(home);
  const peer = await start(home, "version 1", ["--session", "agent:research:main"]);
  expect(await peer.call("sessions_list")).toMatchObject({
    count: 1,
    visibility: "tree",
    sessions: [{ key: "main" }],
  });
  expect(await peer.call("sessions_send", { sessionKey: "agent:ops:main", message: "hi" })).toMatchObject({
    code: "not_visible",
  });
  expect(await peer.tools()).not.toContain("sessions_inbox");
});

function line(message: object): string {
  return `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
}

const HELLO = {
  protocolVersion: "2025-06-18",
  capabilities: {},
  clientInfo: { name: "by hand", version: "1" },
};

test("invalid lines get an error, later messages are answered, and standard output contains nothing else", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const input = [
    "{ no json\n\n",
    `{"long": "${"x".repeat(8 * 1024 * 1024)}"}\n`,
    "[]\n",
    line({ id: "a", method: "initialize", params: HELLO }),
    line({ method: "notifications/initialized" }),
    line({ id: 2, method: "tools/call", params: { name: "sessions_inbox" } }),
    line({ id: 3, method: "no/such" }),
    line({ id: 4, result: {} }),
  ].join("");
  const { code, out } = await run(home, ["mcp"], { input });
  expect(code).toBe(0);
  const answers = out
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text) as { id: unknown; error?: { code: number } });
  expect(answers.filter(({ id }) => id === null).map(({ error }) => error?.code)).toEqual([-32700, -32700]);
  expect(answers.find(({ id }) => id === "a")).toMatchObject({ result: { protocolVersion: "2025-06-18" } });
  expect(answers.find(({ id }) => id === 2)).toMatchObject({ result: { content: expect.any(Array) } });
  expect(answers.find(({ id }) => id === 3)).toMatchObject({ error: { code: -32601 } });
});

test("the client gets an error while the gateway is down, and the same process works when it is back", async () => {
  const { home } = await makeHome();
  const first = await startGateway(home);
  const started = call(home, ["mcp", "--handle", "steady"]);
  started.stdin.write(line({ id: 1, method: "initialize", params: HELLO }));
  await started.shows('"id":1');
  await first.stop();
  started.stdin.write(line({ id: 2, method: "tools/list" }));
  await started.shows('"id":2');
  expect(started.out()).toMatch(/No gateway is running here/);
  await startGateway(home);
  started.stdin.write(line({ id: 3, method: "tools/call", params: { name: "sessions_inbox" } }));
  await started.shows('"id":3');
  expect(started.out()).toContain("agent:main:mcp:steady");
  started.interrupt("SIGTERM");
  expect(await started.code).toBe(0);
});

test("a wrong token and an unreachable --url are reported; standard output stays empty", async () => {
  const { home, port } = await makeHome();
  await startGateway(home);
  const input = line({ id: 1, method: "initialize", params: HELLO });
  const wrong = await run(home, ["--token", "a-wrong-token", "--url", `127.0.0.1:${port}`, "mcp"], { input });
  expect(JSON.parse(wrong.out)).toMatchObject({
    id: 1,
    error: { message: expect.stringMatching(/401.*token is not valid/) },
  });
  const away = await run(home, ["--url", "127.0.0.1:1", "--token", "x", "mcp"], { input });
  expect(away).toMatchObject({ code: 3, out: "" });
  expect(away.err).toMatch(/no gateway answers/);
});
