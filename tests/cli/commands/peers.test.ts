// `parley peer`: invitations and the addresses of peers, against a real gateway.

import { expect, test } from "vitest";
import { makeHome, run, runJson, startGateway } from "../kit.ts";

test("the address of a peer is kept, and the command still talks to its own gateway", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const first = ["--address", "http://127.0.0.1:1/"];
  const invited = await run(home, ["peer", "invite", "desk", "--expose", "main", ...first]);
  expect(invited).toMatchObject({ code: 0, err: "" });
  expect(invited.out).toMatch(
    /Invited desk\. It may write to: main\.\n.*--code [A-Z0-9]{4}(-[A-Z0-9]{4}){3}/,
  );
  const peers = async () => (await runJson(home, ["peer", "list"])).peers;
  expect(await peers()).toMatchObject([{ name: "desk", url: "http://127.0.0.1:1", exposes: ["main"] }]);
  expect(await run(home, ["peer", "expose", "desk", "--address", "http://127.0.0.1:2"])).toMatchObject({
    code: 0,
  });
  expect(await peers()).toMatchObject([{ name: "desk", url: "http://127.0.0.1:2", exposes: ["main"] }]);
  const wrong = await run(home, ["peer", "expose", "desk", "--address", "ftp://x"]);
  expect(wrong.code).toBe(1);
  expect(wrong.err).toContain('"ftp://x" is not the address of a gateway');
});
