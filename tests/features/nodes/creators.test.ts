// Rights of nodes. A node has the rights of the token that paired it, which are checked at each event.

import { describe, expect } from "vitest";
import {
  codeIn,
  type Device,
  joinedNode,
  NODE_TOKENS,
  newDevice,
  said,
  tryNode,
} from "../../gateway/clients/devices.ts";
import type { House, HouseOptions } from "../../gateway/kit.ts";
import { openerOf } from "../../gateway/opener.ts";
import { both, share } from "../../kit/deep.ts";

const SCOPED = "a-token-that-pairs-devices";
const ALL = ["node-*", "agent:research:*"];
const nodes = {
  enabled: true,
  allowCommands: ["*"],
  allowedSessionKeys: ["agent:*"],
  allowSandboxed: false,
};

/**
 * Returns a configuration with a token for these sessions. If `sessions` is undefined, it has no such token.
 */
function withToken(sessions?: readonly string[], scope: "admin" | "write" | "read" = "admin"): HouseOptions {
  const token = { token: SCOPED, role: "operator" as const, scopes: [`operator.${scope}` as const] };
  const scoped = sessions === undefined ? [] : [{ ...token, sessions }];
  return { gateway: { tokens: [...NODE_TOKENS, ...scoped] }, choices: { features: { nodes } } };
}

/** Pairs a device with this token. */
async function pairedBy(house: House, token?: string): Promise<Device> {
  const key = newDevice();
  const { raw, answer } = await tryNode(house, key);
  raw.socket.terminate();
  const client = await house.client(token === undefined ? {} : { token });
  await client.request("node.pair.approve", { code: codeIn(answer), agentId: "research" });
  return key;
}

/** Sends an event of the device, and returns the answer. */
async function event(house: House, key: Device, more: object = {}): Promise<string> {
  const raw = await joinedNode(house, key);
  const { payload, error } = await said(raw, "agent.request", { message: "hello", ...more });
  raw.socket.terminate();
  return error === undefined ? `in ${payload.sessionKey}` : `${error.code} ${error.message}`;
}

const runsIn = async (house: House) =>
  (await house.store.db.selectFrom("runs").select("run_id").execute()).length;

describe.each(share(["embedded"], ["PostgreSQL"]))(
  "a node has the rights of the token that paired it: %s",
  (kind) => {
    const test = both;
    test("I13: a node's events start runs only while its pairing token exists and covers its session and agent", async () => {
      const open = await openerOf(kind);
      let house = await open(withToken(ALL));
      const key = await pairedBy(house, SCOPED);
      const own = `in node-${key.id}`;
      expect(await event(house, key)).toBe(own);
      const restarted = async (options: HouseOptions) => {
        await house.stop();
        house = await open(options);
        return event(house, key);
      };
      expect(await restarted(withToken())).toMatch(/FORBIDDEN the token that paired this node was removed/);
      expect(await restarted(withToken(["agent:research:*"]))).toContain("does not cover the session node-");
      expect(await restarted(withToken(["node-*"]))).toContain("does not cover the agent research");
      expect(await restarted(withToken(ALL, "read"))).toContain("FORBIDDEN");
      expect(await runsIn(house)).toBe(1);
      expect(await restarted(withToken(ALL, "write"))).toBe(own);
      expect(await runsIn(house)).toBe(2);
    });

    test("I13: a node writes to no session or destination that its token does not cover", async () => {
      const open = await openerOf(kind);
      const house = await open(withToken(ALL));
      const key = await pairedBy(house, SCOPED);
      const main = "agent:main:main";
      expect(await event(house, key, { sessionKey: "agent:research:main" })).toBe("in agent:research:main");
      expect(await event(house, key, { sessionKey: main })).toContain(`does not cover the session ${main}`);
      for (const to of [{}, { to: main }]) {
        expect(await event(house, key, { deliver: true, ...to })).toContain(
          "may not write to the destination of its replies",
        );
      }
      expect(await runsIn(house)).toBe(1);
    });

    test("a node that was paired with the gateway's own token has all rights that the configuration gives to nodes", async () => {
      const open = await openerOf(kind);
      const first = await open(withToken(ALL));
      const key = await pairedBy(first);
      await first.stop();
      const second = await open(withToken());
      expect(await event(second, key)).toBe(`in node-${key.id}`);
      expect(await event(second, key, { sessionKey: "agent:main:main", deliver: true })).toBe(
        "in agent:main:main",
      );
    });

    test("if a node is paired again, it has the rights of the new token", async () => {
      const open = await openerOf(kind);
      const first = await open(withToken(ALL));
      const key = await pairedBy(first, SCOPED);
      await first.stop();
      const second = await open(withToken());
      const admin = await second.client();
      await admin.request("node.pair.remove", { nodeId: key.id });
      const { answer } = await tryNode(second, key);
      await admin.request("node.pair.approve", { code: codeIn(answer), agentId: "research" });
      expect(await event(second, key)).toBe(`in node-${key.id}`);
    });
  },
);
