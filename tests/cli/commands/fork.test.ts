// parley sessions fork, and /fork in a chat.

import { expect, test } from "vitest";
import { makeHome, run, startGateway } from "../kit.ts";

test("sessions fork continues a conversation in a new session, at the newest message or at a given one", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const send = (text: string, session = "work") =>
    run(home, ["send", "--session", session, "--wait", "30", text]);
  await send("say marmalade");
  await send("say porridge");
  const history = async (key: string) => (await run(home, ["sessions", "history", key])).out;
  const newest = await run(home, ["sessions", "fork", "work", "--label", "another"]);
  const keyIn = (text: string): string => /agent:main:work:fork:[0-9a-f-]{36}/.exec(text)?.[0] ?? "";
  expect(newest).toMatchObject({
    code: 0,
    err: expect.stringContaining("npx parley-gateway chat --session agent:main:work:fork:"),
  });
  expect(await history(keyIn(newest.out))).toMatch(
    /marmalade.*porridge.*Forked from the conversation "say marmalade", after the message above/s,
  );
  expect((await run(home, ["sessions", "list", "--search", "another"])).out).toContain(keyIn(newest.out));
  const { messages } = JSON.parse((await run(home, ["--json", "sessions", "history", "work"])).out) as {
    messages: { id: string }[];
  };
  const earlier = await run(home, ["sessions", "fork", "work", "--at", messages[1]?.id ?? ""]);
  expect(await history(keyIn(earlier.out))).not.toContain("porridge");
  const said = await send("/fork");
  expect(await history(keyIn(said.out))).toContain("porridge");
  expect(await run(home, ["sessions", "fork", "work", "--at", "gone"])).toMatchObject({
    ...{ code: 1, err: expect.stringContaining("No message") },
  });
  expect(await run(home, ["sessions", "fork", "main"])).toMatchObject({
    ...{ code: 1, err: expect.stringContaining("no messages yet") },
  });
});
