// Outgoing HTTP requests over real sockets: allowed addresses, and the connect timeout.

import { once } from "node:events";
import { expect, test } from "vitest";
import {
  AddressRefused,
  isPublic,
  outgoingFetch,
  outgoingRequest,
  publicLookup,
} from "../../src/world/outgoing.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { type DeafServer, deafServer, serveHttp } from "../kit/loopback.ts";

test.each([
  ...["0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1"],
  ...[
    "172.31.255.255",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
  ],
  ...["::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "fe80::1", "fc00::1", "fd12::1"],
  ...["ff02::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "localhost", "", "127.1", "0x7f.1"],
])("OC1: %j is not a public address", (address) => {
  expect(isPublic(address)).toBe(false);
});

test.each(["8.8.8.8", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "2a00:1450:4001::8a"])(
  "OC1: %j is a public address",
  (address) => {
    expect(isPublic(address)).toBe(true);
  },
);

async function silentServer(): Promise<DeafServer> {
  const made = await deafServer();
  cleanup(() => made.close());
  return made;
}

const media = (url: string) => ({ purpose: "media", url, configured: "https://graph.example" }) as const;

test.each(["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f000001"])(
  "OC1: a URL from an untrusted source is refused if its host is this machine: %s",
  async (host) => {
    const { url } = await silentServer();
    const { port } = new URL(url);
    expect(() => outgoingRequest(media(`https://${host}:${port}/x`), {})).toThrow(AddressRefused);
  },
);

test("OC1: no connection is made to a name that resolves to an address of this machine", async () => {
  const silent = await silentServer();
  const request = outgoingRequest(media(`${silent.url.replace("127.0.0.1", "localhost")}/x`), {});
  const [error] = await once(request.end(), "error");
  expect(error).toBeInstanceOf(AddressRefused);
  expect(silent.connections()).toBe(0);
});

type Found = { address: string; family: number }[];

/** Returns the result of a connection to a name that resolves to these addresses. */
function lookedUp(found: Found, options: { all?: boolean }): unknown[] {
  const answers: unknown[][] = [];
  const look = publicLookup((_, __, looked) => looked(null, found));
  look("name.example", options, (...answer) => answers.push(answer));
  expect(answers).toHaveLength(1);
  return answers[0] ?? [];
}

test("OC1: a connection uses only the public addresses of a name", () => {
  const here = { address: "127.0.0.1", family: 4 };
  const there = { address: "2606:4700::1111", family: 6 };
  expect(lookedUp([here, there], { all: true })).toEqual([null, [there]]);
  expect(lookedUp([here, there], {})).toEqual([null, there.address, 6]);
  for (const found of [[here], []]) {
    expect(lookedUp(found, { all: true })).toEqual([expect.any(AddressRefused), []]);
    expect(lookedUp(found, {})).toEqual([expect.any(AddressRefused), []]);
  }
});

test("OC1: each connection resolves the name again, so it is refused if the name's address has become forbidden", () => {
  const answers = ["8.8.8.8", "10.0.0.1"].map((address) => [{ address, family: 4 }]);
  const look = publicLookup((_, __, looked) => looked(null, answers.shift() ?? []));
  const seen: unknown[] = [];
  look("rebinding.example", {}, (error, address) => seen.push(error ?? address));
  look("rebinding.example", {}, (error, address) => seen.push(error ?? address));
  expect(seen).toEqual(["8.8.8.8", expect.any(AddressRefused)]);
});

test("OG1: the configured address may be on this machine, but no other address may", async () => {
  const asked: string[] = [];
  const here = await serveHttp((request, response) => {
    asked.push(request.url ?? "");
    response.end("fine");
  });
  cleanup(() => here.close());
  const silent = await silentServer();
  const ask = outgoingFetch("model", `${here.origin}/v1`);
  expect(await (await ask(`${here.origin}/v1/models`)).text()).toBe("fine");
  await expect(ask(`${silent.url.replace("https", "http")}/v1`)).rejects.toThrow(AddressRefused);
  const to = { purpose: "channel", configured: here.origin } as const;
  const request = outgoingRequest({ ...to, url: `${here.origin}/send` }, {});
  const [answer] = await once(request.end(), "response");
  expect(answer).toMatchObject({ statusCode: 200 });
  answer.resume();
  expect(() => outgoingRequest({ ...to, url: silent.url }, {})).toThrow(AddressRefused);
  expect(asked).toEqual(["/v1/models", "/send"]);
  expect(silent.connections()).toBe(0);
});
