// WhatsApp with a whole gateway: a web hook becomes one run, and its answer one text, even after a restart.

import { expect, test } from "vitest";
import { makeHome, run, startGateway } from "../../cli/kit.ts";
import {
  ACCESS_TOKEN,
  APP_SECRET,
  graphError,
  PHONE_NUMBER_ID,
  seenText,
  startWhatsApp,
  VERIFY_TOKEN,
  webHook,
} from "../../kit/platforms/whatsapp-server.ts";
import { CONTACT, message, PERSON, said } from "./kit.ts";

async function openPlace(more: object = {}) {
  const server = await startWhatsApp();
  const whatsapp = {
    phoneNumberId: PHONE_NUMBER_ID,
    accessToken: ACCESS_TOKEN,
    appSecret: APP_SECRET,
    verifyToken: VERIFY_TOKEN,
    graphUrl: server.graphUrl,
    dmPolicy: "open",
    inbound: { debounceMs: 0 },
    ...more,
  };
  const { home, port } = await makeHome({ channels: { whatsapp } });
  const url = `http://127.0.0.1:${port}/channels/whatsapp/default`;
  return {
    ...{ home, server },
    gateway: await startGateway(home),
    post: (one: object) => server.post(url, webHook({ contacts: [CONTACT], messages: [one] })),
    shown: () => server.sent.map(({ to, body }) => ({ to, text: seenText(body) })),
  };
}

test("a person's message is answered in the same chat, and a repeated web hook gets no second answer", async () => {
  const { home, gateway, post, server, shown } = await openPlace();
  const one = said("say good morning");
  expect(await post(one)).toEqual([200]);
  await expect.poll(() => server.sent.length).toBe(1);
  expect(shown()).toEqual([{ to: PERSON, text: "good morning" }]);
  expect(await post(one)).toEqual([200]);
  await gateway.stop();
  await startGateway(home);
  expect(await post(one)).toEqual([200]);
  expect(await post(said("say good night"))).toEqual([200]);
  await expect.poll(() => server.sent.length).toBe(2);
  expect(shown()[1]).toEqual({ to: PERSON, text: "good night" });
});

test("with pairing, an unknown person gets a pairing code but no answer of an agent", async () => {
  const { post, server, shown } = await openPlace({ dmPolicy: "pairing" });
  expect(await post(said("say the secret"))).toEqual([200]);
  await expect.poll(() => server.sent.length).toBe(1);
  expect(shown()[0]?.text).not.toContain("the secret");
  expect(shown()[0]?.text).toMatch(/[A-Z0-9]{6,}/);
});

test("I5: an answer that the platform refuses is a failed delivery with the platform's reason", async () => {
  const { home, post, server } = await openPlace();
  server.fail(400, graphError(131047));
  expect(await post(said("say hello"))).toEqual([200]);
  const failed = async (): Promise<string> => (await run(home, ["deliveries", "--json"])).out;
  await expect.poll(failed).toContain("has to write first");
  expect(server.sent).toEqual([]);
});

test("the agent receives the file of a message", async () => {
  const { post, server } = await openPlace();
  server.media.set("77", { bytes: Buffer.from("the notes"), mimeType: "text/plain" });
  const document = { id: "77", filename: "notes.txt", mime_type: "text/plain", caption: "say got it" };
  expect(await post(message({ type: "document", document }))).toEqual([200]);
  await expect.poll(() => server.sent.length).toBe(1);
  expect(server.paths.some((path) => path.startsWith("/attachments/"))).toBe(true);
});
