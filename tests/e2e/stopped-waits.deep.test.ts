// A real gateway is stopped while MCP clients wait for an answer, over HTTP and over standard streams. The
// run ends within the grace time, and the client gets its answer.

import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { expect, test } from "vitest";
import { type Answer, oldPeer, openPeer, type Peer, SPEAKERS } from "../gateway/clients/mcp.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { startModelServer } from "../kit/model-server/server.ts";
import { pause, text } from "../kit/model-server/steps.ts";
import { LAUNCHER, TOKEN } from "../kit/process/fleet.ts";
import { type GatewayProcess, startProcess } from "../kit/process/gateway-process.ts";

const HANDLE = "waiting";

function overHttp(speaker: (typeof SPEAKERS)[number]) {
  return ({ httpUrl }: GatewayProcess): Promise<Peer> =>
    openPeer({ http: httpUrl }, speaker, { token: TOKEN, headers: { "x-parley-handle": HANDLE } });
}

function overStdio({ home }: GatewayProcess): Promise<Peer> {
  const env = { PATH: process.env.PATH ?? "", HOME: home, PARLEY_LOG: "silent", PARLEY_LAUNCHED: "1" };
  const args = [LAUNCHER, "mcp", "--handle", HANDLE];
  const wire = new StdioClientTransport({ command: process.execPath, args, env, stderr: "ignore" });
  return oldPeer("Desk", wire);
}

const WAYS: [string, (gateway: GatewayProcess) => Promise<Peer>][] = [
  ...SPEAKERS.map((speaker): [string, ReturnType<typeof overHttp>] => [
    `HTTP, ${speaker}`,
    overHttp(speaker),
  ]),
  ["standard input and output", overStdio],
];

test.each(WAYS)(
  "%s: if SIGTERM arrives during a wait, the client gets either the answer or a notice in its inbox, never both or neither",
  async (_, open) => {
    const release = Promise.withResolvers<void>();
    const server = await startModelServer(() => [text("forty ", 1), pause(release.promise), text("two", 1)]);
    cleanup(() => server.close());
    const { id: _id, ...provider } = server.provider("openai-completions");
    const config = {
      gateway: { port: await freePort(), auth: { token: TOKEN } },
      models: { providers: { one: provider } },
      agents: { list: [{ id: "main", default: true, model: "one/test-model" }] },
    };
    const gateway = await startProcess({ config });
    const peer = await open(gateway);
    const sent = peer.call("sessions_send", { sessionKey: "main", message: "count", timeoutSeconds: 60 });
    await expect.poll(() => server.requests.length).toBeGreaterThan(0);
    gateway.signal("SIGTERM");
    const late = () =>
      gateway.connect().then(
        () => "in",
        () => "refused",
      );
    await expect.poll(late).toBe("refused");
    release.resolve();
    const told = await sent.catch(() => ({ status: "lost" }));
    expect(await gateway.exited).toBe(0);
    await peer.close();

    const again = await startProcess({ home: gateway.home });
    const back = await open(again);
    const { messages } = (await back.call("sessions_inbox")) as { messages: Answer[] };
    const notices = messages.filter(({ kind }) => kind === "notice").map(({ text }) => text);
    // On a busy machine the connection may close before the answer is written.
    if (told.status === "ok") {
      expect(told).toMatchObject({ reply: "forty two" });
      expect(notices).toEqual([]);
    } else {
      expect(notices).toEqual([expect.stringContaining("forty two")]);
    }
  },
);
