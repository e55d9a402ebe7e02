// A model's thinking over the network while it is written: who gets it, in which pieces, and without secrets.

import { expect, test } from "vitest";
import type { ConnectOptions } from "../../../src/contract/client/node.ts";
import type { AgentEvent } from "../../../src/contract/events.ts";
import { THINKING_DELTAS } from "../../../src/contract/protocol.ts";
import type { LiveEvent } from "../../../src/core/shapes/event.ts";
import { Redactor } from "../../../src/core/text/redact/redact.ts";
import { LongText } from "../../../src/core/text/text-delta.ts";
import { createBus } from "../../../src/engine/bus.ts";
import type { Caller } from "../../../src/gateway/auth.ts";
import { createFanout } from "../../../src/gateway/socket/fanout.ts";
import type { EncodedEvent } from "../../../src/gateway/socket/outlet.ts";
import { rounds } from "../../kit/deep.ts";
import { dice } from "../../kit/dice.ts";
import { until } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";
import { assistantMessage } from "../../store/samples.ts";
import { settingsWith } from "../../tools/app.ts";
import { openHouse } from "../kit.ts";

const RUN = { runId: "run-1", sessionKey: "agent:main:main" };
const KEY = `sk-proj-${"aB3dE5fG7hJ9kL1mN2pQ4rS6tU8v"}`;
const READER: Caller = { id: "t", role: "operator", scopes: ["operator.read"] };

function openFanout() {
  const world = fakeWorld();
  const bus = createBus(world.log);
  const redactor = new Redactor(["a-known-secret"]);
  const settings = settingsWith({});
  const fanout = createFanout({ ...world, bus, redactor, settings, shared: false });
  let length = 0;
  const publish = (event: LiveEvent): void => bus.publish(event);
  const think = (text: string, part = "1.0", offset = length): void => {
    publish({ kind: "thinking", ...RUN, part, offset, text });
    length = offset + text.length;
  };
  return {
    ...{ world, redactor, publish, think },
    start: (flowStep?: "reply") =>
      publish({
        ...{ kind: "run_started", ...RUN, chainId: "c", startedAt: world.clock.now() },
        ...(flowStep === undefined ? {} : { flowStep }),
      }),
    /** Adds a client that assembles the thinking from its events. */
    join(caps: readonly string[] = [THINKING_DELTAS], caller: Caller = READER) {
      const sent: EncodedEvent[] = [];
      let text = "";
      const data = () =>
        sent.flatMap(({ head }) => {
          const { event, payload } = JSON.parse(`${head}}`) as { event: string; payload: AgentEvent };
          return event === "agent" && payload.stream === "thinking_delta" ? [payload.data] : [];
        });
      const leave = fanout.add({
        caller,
        params: { caps },
        event(event) {
          const before = data().length;
          sent.push(event);
          for (const { offset, delta } of data().slice(before)) {
            const after = new LongText(text);
            expect(after.change({ offset, text: delta }), `a delta at ${offset} of ${text.length}`).toBe(
              true,
            );
            text = after.text;
          }
        },
      });
      return { sent, leave, data, text: () => text };
    },
  };
}

test("a client with thinking-deltas gets each new piece of a thought once, and others get none", async () => {
  const house = openFanout();
  const [asks, other] = [house.join(), house.join(["text-deltas"])];
  house.start();
  house.think("Let me see. ");
  await house.world.advance(1_500);
  house.think("It is 42. ");
  expect(asks.data()).toEqual([
    { offset: 0, delta: "Let me see. ", ms: 0 },
    { offset: 12, delta: "It is 42. ", ms: 1_500 },
  ]);
  expect(other.data()).toEqual([]);
  asks.leave();
  house.think("And more. ");
  expect(asks.data()).toHaveLength(2);
});

test("a client that connects during a thought gets all of it first, and after a retry the new thought", () => {
  const house = openFanout();
  house.start();
  house.think("one ");
  house.think("two ");
  const late = house.join();
  expect(late.data()).toEqual([{ offset: 0, delta: "one two ", ms: 0 }]);
  house.think("three ");
  expect(late.text()).toBe("one two three ");
  // The model was called again.
  house.think("Another try ", "1.0", 0);
  expect(late.text()).toBe("Another try ");
  house.think("goes on ");
  expect(late.data().at(-1)).toMatchObject({ offset: 12, delta: "goes on " });
  house.think("The next message ", "1.1", 0);
  expect(late.text()).toBe("The next message ");
});

test("a reader that is behind gets the whole thought in place of the pieces that it missed", () => {
  const house = openFanout();
  const client = house.join();
  house.start();
  house.think("one ");
  house.think("two ");
  const latest = client.sent.at(-1)?.latest?.();
  expect(JSON.parse(`${latest?.head}}`).payload.data).toEqual({ offset: 0, delta: "one two ", ms: 0 });
});

test.each([
  ["a tool call begins", { kind: "tool", ...RUN, phase: "start", callId: "c", name: "exec", atMs: 1 }],
  [
    "its message is stored",
    { kind: "message", ...RUN, sessionId: "s", message: assistantMessage("m1", "ok") },
  ],
] as const)("a thought is not sent to later clients when %s", (_, event) => {
  const house = openFanout();
  house.start();
  house.think("It is this. ");
  house.publish(event);
  expect(house.join().data()).toEqual([]);
});

test("I9: thinking is sent only to clients that may read the session", () => {
  const house = openFanout();
  const others = [
    house.join([THINKING_DELTAS], { ...READER, patterns: ["agent:other:*"] }),
    house.join([THINKING_DELTAS], { ...READER, scopes: [] }),
    house.join([THINKING_DELTAS], { ...READER, role: "node" }),
  ];
  const covered = house.join([THINKING_DELTAS], { ...READER, patterns: ["agent:main:*"] });
  house.start();
  house.think("for the owner ");
  expect(covered.text()).toBe("for the owner ");
  for (const other of others) expect(other.sent.join("")).not.toContain("owner");
});

test("E1: the thinking of a reply turn is not sent", () => {
  const house = openFanout();
  const client = house.join();
  house.start("reply");
  house.think("I would rather not say ");
  expect(client.data()).toEqual([]);
});

test("I14: a secret in a thought is redacted, however the thought is split and whenever a client joins", () => {
  const secrets = [KEY, "a-known-secret", "ghp_0123456789abcdefghijABCDEFGHIJ012345"];
  const words = ["I look at ", "the key ", "in `.env`: ", "password=", "\n", " and ", "so. "];
  for (let round = 0; round < rounds(60, 600); round += 1) {
    const seed = `thinking ${round}`;
    const roll = dice(seed);
    const house = openFanout();
    const pieces = Array.from({ length: 12 }, () => roll.of(roll.chance(0.3) ? secrets : words));
    const text = `${pieces.join("")} the end of it`;
    const clients = [house.join()];
    house.start();
    for (let at = 0; at < text.length; ) {
      const size = 1 + roll.below(roll.chance(0.5) ? 3 : 40);
      house.think(text.slice(at, at + size));
      at += size;
      if (roll.chance(0.1)) clients.push(house.join());
    }
    const masked = house.redactor.mask(text);
    for (const client of clients) {
      const shown = client.text();
      // The last word may be held back.
      expect(masked.startsWith(shown), `SEED=${seed}: ${shown}`).toBe(true);
      expect(masked.length - shown.length, `SEED=${seed}`).toBeLessThan(10);
      const wire = client
        .data()
        .map(({ delta }) => delta)
        .join("");
      for (const secret of secrets) expect(wire, `SEED=${seed}`).not.toContain(secret.slice(0, 12));
    }
  }
});

test("the client library joins the pieces of each run's thinking, and forgets it when the run ends", async () => {
  const done = Promise.withResolvers<string>();
  const house = await openHouse({
    play(handle) {
      handle.thinking({ offset: 0, text: "one " });
      handle.thinking({ offset: 4, text: "two " });
      return done.promise;
    },
  });
  const join = async (more: Partial<ConnectOptions>) => {
    const texts: (string | undefined)[] = [];
    const client = await house.client(more);
    client.on("agent", ({ stream, data }) => {
      if (stream === "thinking_delta") texts.push(data.text);
    });
    return { client, texts };
  };
  const asks = await join({ caps: [THINKING_DELTAS] });
  const other = await join({});
  const call = asks.client.agent({ sessionKey: RUN.sessionKey, message: "think" });
  await until(() => asks.texts.at(-1) === "one two ");
  done.resolve("done");
  await call.done;
  expect(asks.texts).toEqual(["one ", "one two "]);
  expect(other.texts).toEqual([]);
});
