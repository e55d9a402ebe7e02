// One bot account and two gateways. Only one gateway receives the account's messages at a time.

import { expect, test } from "vitest";
import { Accounts } from "../../src/channels/accounts.ts";
import { type ClusterProcess, embeddedGround, openCluster } from "../kit/engine/cluster.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { until } from "../kit/until.ts";

const NAME = "telegram:1";

/** Records the processes that listen to the account now, and those that listened earlier. */
interface Ears {
  readonly listening: Set<string>;
  readonly began: string[];
  most: number;
}

function listenIn(process: ClusterProcess, name: string, ears: Ears, more: { failing?: () => boolean } = {}) {
  const { engine } = process.app;
  const accounts = new Accounts({
    commit: engine.commit,
    world: process.world,
    owner: engine.processId,
    leaseUntil: engine.leaseUntil,
  });
  accounts.start([
    {
      name: NAME,
      async listen({ signal }) {
        ears.began.push(name);
        if (more.failing?.() === true) throw new Error("the platform closed the connection");
        ears.listening.add(name);
        ears.most = Math.max(ears.most, ears.listening.size);
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        ears.listening.delete(name);
      },
    },
  ]);
  let dead = false;
  cleanup(async () => {
    if (!dead) await accounts.stop();
  });
  return {
    accounts,
    kill() {
      dead = true;
      process.die();
      // A dead process no longer listens.
      ears.listening.delete(name);
    },
  };
}

async function twoGateways() {
  const cluster = await openCluster(embeddedGround);
  const ears: Ears = { listening: new Set(), began: [], most: 0 };
  return { ears, a: await cluster.join({ plays: {} }), b: await cluster.join({ plays: {} }) };
}

test("only one process listens to an account, and another takes over when it dies", async () => {
  const { ears, a, b } = await twoGateways();
  const first = listenIn(a, "a", ears);
  await until(() => ears.listening.has("a"));
  listenIn(b, "b", ears);
  first.kill();
  await until(() => ears.listening.has("b"));
  expect(ears.began).toEqual(["a", "b"]);
  expect(ears.most).toBe(1);
});

test("a planned stop releases the account at once, without waiting until the lease expires", async () => {
  const { ears, a, b } = await twoGateways();
  const first = listenIn(a, "a", ears);
  await until(() => ears.listening.has("a"));
  listenIn(b, "b", ears);
  await first.accounts.stop();
  await until(() => ears.listening.has("b"));
  expect(ears.most).toBe(1);
});

test("if a process was suspended and another one took over the account, the first one stops listening", async () => {
  const { ears, a, b } = await twoGateways();
  listenIn(a, "a", ears);
  await until(() => ears.listening.has("a"));
  listenIn(b, "b", ears);
  a.pause();
  await until(() => ears.listening.has("b"));
  a.goOn();
  await until(() => !ears.listening.has("a"));
  expect(ears.listening).toEqual(new Set(["b"]));
});

test("a listener that fails is restarted", async () => {
  const { ears, a } = await twoGateways();
  let failures = 2;
  listenIn(a, "a", ears, { failing: () => failures-- > 0 });
  await until(() => ears.listening.has("a"));
  expect(ears.began).toEqual(["a", "a", "a"]);
});
