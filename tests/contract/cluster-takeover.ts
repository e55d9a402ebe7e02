// A gateway process takes over the work of a process that died, paused, stopped or lost an answer.

import { expect, test } from "vitest";
import { type ClusterProcess, type OpenGround, openCluster } from "../kit/engine/cluster.ts";
import { assistantText, endOf } from "../kit/engine/engine.ts";
import type { FlowAppOptions, Play } from "../kit/engine/flow-app.ts";
import { until } from "../kit/until.ts";
import { CHATS, gate, join, MAIN, two } from "./cluster-stage.ts";

export function takeoverContract(openGround: OpenGround): void {
  test("I1, I2: if a process dies, another one takes over its run, once, and continues at the end of the transcript", async () => {
    const held = gate();
    const began: string[] = [];
    const playOf = (name: string): Record<string, Play> => ({
      [MAIN]: async () => {
        began.push(name);
        if (name === "a") await held.pass();
        return `by ${name}`;
      },
    });
    const cluster = await openCluster(openGround);
    const a = await join(cluster, playOf("a"));
    const b = await join(cluster, playOf("b"));
    const run = await a.app.tell(MAIN, "work");
    await held.reached;
    a.die();
    const end = await endOf(b.app.engine, run.runId);
    expect(end).toMatchObject({ state: "ok", reply: "by b", attempt: 2, crashes: 1 });
    expect(began).toEqual(["a", "b"]);
    expect(await b.app.texts(MAIN)).toEqual(["user: work", "assistant: by b"]);
  });

  test("I1: a process that was paused writes nothing to a run that another process took over", async () => {
    const held = gate();
    const lost = Promise.withResolvers<unknown>();
    const cluster = await openCluster(openGround);
    const a = await join(cluster, {
      [MAIN]: async ({ handle }) => {
        await held.pass();
        await handle.append(assistantText("zombie", "words of the dead")).catch(() => {});
        const text = [{ type: "text" as const, text: "x" }];
        const facts = { role: "toolResult" as const, toolCallId: "c", toolName: "t", isError: false };
        lost.resolve(
          await handle.append({ ...facts, id: "late", content: text, timestamp: 1 }).catch((e) => e),
        );
        return "by a";
      },
    });
    const b = await join(cluster, { [MAIN]: () => "by b" });
    const run = await a.app.tell(MAIN, "work");
    await held.reached;
    a.pause();
    expect(await endOf(b.app.engine, run.runId)).toMatchObject({ reply: "by b", attempt: 2 });
    held.open();
    a.goOn();
    expect(await lost.promise).toBeInstanceOf(Error);
    await until(async () => (await a.app.engine.load()).running === 0);
    expect(await b.app.texts(MAIN)).toEqual(["user: work", "assistant: by b"]);
    // The paused process has resumed and works normally.
    const next = await a.app.tell(CHATS[0] ?? "", "again");
    expect((await endOf(b.app.engine, next.runId)).state).toBe("ok");
  });

  test("I2: if the answer to a claim was lost, the process that the run's row names resumes the run", async () => {
    const { a, b } = await two(openGround, {});
    a.loseNextAnswer();
    const id = "a-run-of-its-own";
    await a.app.tell(MAIN, "work", { runId: id }).catch(() => {});
    const end = await endOf(b.app.engine, id);
    expect(end).toMatchObject({ state: "ok", reply: "echo work", crashes: 0 });
  });

  test("I2: if a run's end is committed but the store's answer is lost, the end is stored once and reported in each process", async () => {
    const processes: ClusterProcess[] = [];
    const cluster = await openCluster(openGround);
    const a = await join(cluster, {
      [MAIN]: () => {
        processes[0]?.loseNextAnswer();
        return "";
      },
    });
    processes.push(a);
    const b = await join(cluster, {});
    const run = await a.app.tell(MAIN, "work");
    expect(await endOf(a.app.engine, run.runId)).toMatchObject({ state: "ok", attempt: 1 });
    for (const { app } of [a, b]) {
      const ends = () => app.events.filter((event) => event.kind === "run_ended");
      await until(() => ends().length > 0);
      expect(ends()).toMatchObject([{ runId: run.runId }]);
    }
    const next = await a.app.tell(CHATS[0] ?? "", "more");
    expect((await endOf(a.app.engine, next.runId)).state).toBe("ok");
    expect(await a.app.texts(MAIN)).toEqual(["user: work"]);
  });

  test("a planned stop returns unfinished runs to their lanes, and another process continues them immediately", async () => {
    const held = gate();
    const cluster = await openCluster(openGround);
    const a = await join(cluster, {
      [MAIN]: async ({ handle }) => {
        await Promise.race([
          held.pass(),
          new Promise((resolve) => handle.signal.addEventListener("abort", resolve)),
        ]);
        handle.signal.throwIfAborted();
        return "by a";
      },
    });
    const b = await join(cluster, { [MAIN]: () => "by b" });
    const run = await a.app.tell(MAIN, "work");
    await held.reached;
    await a.stop();
    expect(await endOf(b.app.engine, run.runId)).toMatchObject({ reply: "by b", crashes: 0 });
  });

  test("if the process of a waiting caller dies, the wait ends, and a notice reports the outcome", async () => {
    const held = gate();
    const cluster = await openCluster(openGround);
    const plays: Record<string, Play> = {
      [CHATS[0] ?? ""]: async () => {
        await held.pass();
        return "the answer";
      },
    };
    const b = await join(cluster, plays);
    const a = await join(cluster, plays);
    const busy = await b.app.tell(CHATS[0] ?? "", "first");
    await held.reached;
    void a.app.send(MAIN, CHATS[0] ?? "", "a question", 60);
    await until(async () => (await b.app.runs(CHATS[0] ?? "")).length === 2);
    a.die();
    await until(async () => {
      const waits = await b.app.store.db.selectFrom("waits").select("state").execute();
      return waits.length === 1 && waits[0]?.state === "ended";
    });
    held.open();
    await endOf(b.app.engine, busy.runId);
    await b.app.quiet();
    expect((await b.app.texts(MAIN)).some((text) => text.includes("the answer"))).toBe(true);
  });

  test.each([true, false])(
    "I5: if a process dies, its delivery attempt gets an outcome (channel recognizes repetitions: %s)",
    async (deduplicates) => {
      const attempts: string[] = [];
      const begun = Promise.withResolvers<void>();
      const channelOf = (name: string): NonNullable<FlowAppOptions["channel"]> => {
        return async () => {
          attempts.push(name);
          if (name === "b") return { kind: "sent" };
          begun.resolve();
          return new Promise(() => {});
        };
      };
      const cluster = await openCluster(openGround);
      const plays: Record<string, Play> = {};
      const a = await join(cluster, plays, { channel: channelOf("a"), deduplicates });
      await a.app.route(MAIN);
      void a.app.send(CHATS[0] ?? "", MAIN, "tell them", 0);
      await begun.promise;
      const b = await join(cluster, plays, { channel: channelOf("b"), deduplicates });
      a.die();
      const row = () => b.app.store.db.selectFrom("deliveries").selectAll().executeTakeFirst();
      await until(async () => (await row())?.state !== "pending");
      expect(await row()).toMatchObject(
        deduplicates ? { state: "sent", attempts: 2 } : { state: "failed", code: "ambiguous", attempts: 1 },
      );
      expect(attempts).toEqual(deduplicates ? ["a", "b"] : ["a"]);
    },
  );
}
