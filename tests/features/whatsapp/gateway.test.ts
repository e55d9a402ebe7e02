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
import { CONTACT, PERSON, said } from "./kit.ts";

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

test("I5: an answer that the platform refuses is a failed delivery with the platform's reason", async () => {
  const { home, post, server } = await openPlace();
  server.fail(400, graphError(131047));
  expect(await post(said("say hello"))).toEqual([200]);
  const failed = async (): Promise<string> => (await run(home, ["deliveries", "--json"])).out;
  await expect.poll(failed).toContain("has to write first");
  expect(server.sent).toEqual([]);
});
