// Notifications by ntfy, on a server that checks the JSON of a message as the real one does.
// Hard cases: text that the server must not read, an Allow that nobody asked for, a phone that presses twice.

import { expect, test } from "vitest";
import { cleanup } from "../../kit/engine/engine.ts";
import { serveHttp } from "../../kit/loopback.ts";
import { openDesk } from "./kit.ts";

interface Action {
  readonly action: string;
  readonly label: string;
  readonly url: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

interface Message {
  readonly topic: string;
  readonly title: string;
  readonly message: string;
  readonly priority: number;
  readonly sequence_id: string;
  readonly click?: string;
  readonly actions?: readonly Action[];
}

const TOPIC = "parley-hard-to-guess";
const TOKEN = "tk_of_the_ntfy_server";

async function startNtfy() {
  const got: Message[] = [];
  const { origin, close } = await serveHttp((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (request.headers.authorization !== `Bearer ${TOKEN}`) return void response.writeHead(403).end();
      const message = JSON.parse(Buffer.concat(chunks).toString()) as Message;
      const fits = request.method === "POST" && request.url === "/" && (message.actions?.length ?? 0) <= 3;
      if (!fits || message.topic !== TOPIC) return void response.writeHead(400).end();
      got.push(message);
      response.writeHead(200).end("{}");
    });
  });
  cleanup(close);
  return { url: origin, got };
}

async function openTopic(more: object, push: object = {}) {
  const { url, got } = await startNtfy();
  const desk = await openDesk({ ...push, ntfy: { url, topic: TOPIC, token: TOKEN, ...more } });
  return { desk, got };
}

/** Presses a button as the phone does, at the gateway of the test. */
async function pressed(http: string, action: Action | undefined): Promise<number> {
  const { url = "", method = "", headers = {}, body = "" } = action ?? {};
  return (await fetch(url.replace("https://parley.example", http), { method, headers, body })).status;
}

const PHONES = { url: "https://parley.example/" };
const SECRET = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

test("PU3: by default the server reads neither the command nor a button that allows it", async () => {
  const { desk, got } = await openTopic({}, PHONES);
  await desk.say("run: touch hidden");
  await expect.poll(() => got.length).toBe(1);
  expect(got[0]).toMatchObject({ title: "main asks for permission", priority: 5 });
  expect(JSON.stringify(got)).not.toContain("hidden");
  expect(got[0]?.click).toMatch(/^https:\/\/parley\.example\/#\/inbox\?at=permission%3A/);
  expect(got[0]?.actions?.map(({ label }) => label)).toEqual(["Deny"]);
  const [deny] = got[0]?.actions ?? [];
  expect([await pressed(desk.http, deny), await pressed(desk.http, deny)]).toEqual([200, 404]);
  expect((await desk.client.request("permissions.list", {})).permissions).toEqual([]);
});

test("PU3: with full text and Allow, a command without secrets can be allowed, one with secrets only denied", async () => {
  const { desk, got } = await openTopic({ detail: "full", allow: true }, PHONES);
  await desk.say("run: touch made");
  await expect.poll(() => got.length).toBe(1);
  expect(got[0]?.message).toMatch(/^touch made · in \//);
  expect(got[0]?.actions?.map(({ label }) => label)).toEqual(["Allow once", "Deny"]);
  expect(await pressed(desk.http, got[0]?.actions?.[0])).toBe(200);
  await desk.say(`run: touch other && echo ${SECRET}`, "agent:research:main");
  await expect.poll(() => got.length).toBe(2);
  expect(got[1]?.message).toContain("touch other");
  expect(got[1]?.message).not.toContain("aaaaaaaa");
  expect(got[1]?.actions?.map(({ label }) => label)).toEqual(["Deny"]);
});

test("without an address for phones there are no buttons, and nothing shows topic or token", async () => {
  const { desk, got } = await openTopic({ detail: "full", allow: true });
  await desk.client.request("push.test", { id: "ntfy" });
  await desk.say("run: touch a");
  await expect
    .poll(() => got.map(({ message }) => message))
    .toEqual(["This is a test.", expect.stringMatching(/^touch a · in \//)]);
  expect(got.flatMap(({ actions = [], click }) => [...actions, click])).toEqual([undefined, undefined]);
  const shown = [
    await desk.client.request("push.list", {}),
    await desk.client.request("deliveries.list", {}),
    await desk.client.request("config.get", {}),
  ];
  for (const secret of [TOPIC, TOKEN]) expect(JSON.stringify(shown)).not.toContain(secret);
});
