// A notification about a question about labels on a device whose token covers only some sessions.

import { expect, test } from "vitest";
import { addBrowser, openDesk, startPushService } from "./kit.ts";

test("I13: a device with a token for some sessions is told no payload and no source, and can't allow", async () => {
  const service = await startPushService();
  const more = { tools: { exec: { approval: "never" } } };
  const desk = await openDesk({ services: [service.origin] }, more);
  const made = await desk.client.request("tokens.create", {
    ...{ name: "guest", scopes: ["operator.admin"], sessions: ["agent:research:*"] },
  });
  const theirs = await desk.open(made.token ?? "");
  const tablet = await addBrowser(theirs, service, "tablet");
  await theirs.request("chat.send", { sessionKey: "agent:research:visitor", message: "run: echo text-4711" });
  await expect.poll(async () => (await theirs.request("permissions.list", {})).permissions.length).toBe(1);
  const { permissions } = await theirs.request("permissions.list", {});
  expect(JSON.stringify(permissions)).not.toContain("text-4711");
  await expect.poll(() => tablet.got.length).toBe(1);
  expect.soft(tablet.got[0]?.shown.answers.map(({ decision }) => decision)).toEqual(["deny"]);
  expect(tablet.got[0]?.text).not.toContain("text-4711");
});
