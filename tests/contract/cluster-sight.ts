// One gateway process observes and controls the work of another process.

import { expect, test } from "vitest";
import type { LiveEvent } from "../../src/core/shapes/event.ts";
import { publishOutbox } from "../../src/flows/delivery/outbox.ts";
import { getRun } from "../../src/store/queries/runs/runs.ts";
import type { OpenGround } from "../kit/engine/cluster.ts";
import { assistantText, endOf } from "../kit/engine/engine.ts";
import type { Play } from "../kit/engine/flow-app.ts";
import { whole } from "../kit/live-text.ts";
import { until } from "../kit/until.ts";
import { gate, MAIN, two } from "./cluster-stage.ts";

export function sightContract(openGround: OpenGround): void {
  test("a process can wait for a run of another process and receives its events", async () => {
    const held = gate();
    const plays: Record<string, Play> = {
      [MAIN]: async ({ handle }) => {
        handle.thinking(whole("I look"));
        handle.text(whole("so far"));
        await held.pass();
        return "done";
      },
    };
    const { a, b } = await two(openGround, plays);
    const run = await a.app.tell(MAIN, "work");
    const ended = endOf(b.app.engine, run.runId);
    await held.reached;
    const heard = (kind: LiveEvent["kind"]): boolean => b.app.events.some((event) => event.kind === kind);
    await until(() => heard("run_started") && heard("thinking") && heard("text"));
    held.open();
    expect(await ended).toMatchObject({ state: "ok", reply: "done" });
    await until(() => heard("run_ended"));
    const kinds = b.app.events.flatMap((event) =>
      "runId" in event && event.runId === run.runId ? [event.kind] : [],
    );
    expect(kinds.filter((kind) => kind !== "text" && kind !== "thinking")).toEqual([
      "run_started",
      "run_ended",
    ]);
    expect(a.app.events.filter((event) => event.kind === "run_ended")).toHaveLength(1);
  });

  test("a change of the outbox reaches the other process, whose page shows it", async () => {
    const { a, b } = await two(openGround, { [MAIN]: () => "done" });
    const row = { id: "delivery", sessionKey: MAIN };
    await a.app.engine.commit(async (unit) => publishOutbox(unit, row, "failed"));
    const heard = () => b.app.events.filter((event) => event.kind === "outbox");
    await until(() => heard().length > 0);
    expect(heard()).toEqual([{ kind: "outbox", deliveryId: "delivery", sessionKey: MAIN, state: "failed" }]);
  });

  test("an event that does not fit into one hint (a message between processes) arrives complete and in order", async () => {
    const long = "long ".repeat(10_000);
    const { a, b } = await two(openGround, { [MAIN]: () => long });
    const run = await a.app.tell(MAIN, "work");
    await until(() => b.app.events.some((event) => event.kind === "run_ended"));
    const texts = b.app.events.flatMap((event) => {
      if (event.kind === "run_started" && event.runId === run.runId) return ["started"];
      return event.kind === "run_ended" && event.runId === run.runId ? [event.text] : [];
    });
    expect(texts).toEqual(["started", long]);
  });

  test("a process can stop a run of another process, and the text so far is stored", async () => {
    const stopped = Promise.withResolvers<void>();
    const plays: Record<string, Play> = {
      [MAIN]: async ({ handle }) => {
        handle.text(whole("half a sentence"));
        await new Promise<void>((resolve) => handle.signal.addEventListener("abort", () => resolve()));
        stopped.resolve();
        throw handle.signal.reason;
      },
    };
    const { a, b } = await two(openGround, plays);
    const run = await a.app.tell(MAIN, "work");
    await until(() => b.app.events.some((event) => event.kind === "text"));
    expect(await b.app.engine.abort({ sessionKey: MAIN })).toMatchObject({
      aborted: true,
      runIds: [run.runId],
    });
    await stopped.promise;
    expect(await endOf(a.app.engine, run.runId)).toMatchObject({ state: "aborted", code: "run_aborted" });
    expect(await b.app.texts(MAIN)).toEqual(["user: work", "assistant: half a sentence"]);
  });

  /** Begins a run in the first process; nobody reads live text in the second one. */
  async function beginUnread() {
    const written = Promise.withResolvers<void>();
    const plays: Record<string, Play> = {
      [MAIN]: async ({ handle }) => {
        handle.text(whole("half a sentence"));
        written.resolve();
        await new Promise<void>((resolve) => handle.signal.addEventListener("abort", () => resolve()));
        throw handle.signal.reason;
      },
    };
    const { a, b } = await two(openGround, plays, { showsText: false });
    const { runId } = await a.app.tell(MAIN, "work");
    await written.promise;
    await until(() => b.app.events.some((event) => event.kind === "run_started"));
    const texts = () => b.app.events.flatMap((event) => (event.kind === "text" ? [event.text] : []));
    return { a, b, runId, texts };
  }

  test("a process in which nobody reads live text hears none, until somebody does", async () => {
    const { a, b, texts } = await beginUnread();
    await a.app.engine.commit(async (unit) => publishOutbox(unit, { id: "d", sessionKey: MAIN }, "failed"));
    await until(() => b.app.events.some((event) => event.kind === "outbox"));
    expect(texts()).toEqual([]);
    b.app.engine.bus.showText();
    await until(() => texts().includes("half a sentence"));
    await b.app.engine.abort({ sessionKey: MAIN });
  });

  test("I4: stopping a run from another process does not store its text twice", async () => {
    const written = Promise.withResolvers<void>();
    const plays: Record<string, Play> = {
      [MAIN]: async ({ handle }) => {
        handle.text(whole("I look."));
        const call = { type: "toolCall" as const, id: "c1", name: "look", arguments: {} };
        const message = assistantText("m1", "I look.");
        await handle.append({ ...message, stopReason: "toolUse", content: [...message.content, call] });
        const content = [{ type: "text" as const, text: "seen" }];
        const result = { role: "toolResult" as const, toolCallId: "c1", toolName: "look", isError: false };
        await handle.append({ ...result, id: "r1", content, timestamp: 1 });
        written.resolve();
        await new Promise<void>((resolve) => handle.signal.addEventListener("abort", () => resolve()));
        throw handle.signal.reason;
      },
    };
    const { a, b } = await two(openGround, plays);
    const run = await a.app.tell(MAIN, "work");
    await written.promise;
    await until(() => b.app.events.some((event) => event.kind === "text"));
    await b.app.engine.abort({ sessionKey: MAIN });
    expect(await endOf(a.app.engine, run.runId)).toMatchObject({ state: "aborted" });
    expect((await b.app.texts(MAIN)).filter((text) => text.includes("I look."))).toHaveLength(1);
  });

  test("if every hint is lost, processes find ends, stop runs and continue lanes by reading the rows", async () => {
    const held = gate();
    const plays: Record<string, Play> = {
      [MAIN]: async ({ handle, input }) => {
        if (input === "stop me") {
          await new Promise<void>((resolve) => handle.signal.addEventListener("abort", () => resolve()));
          throw handle.signal.reason;
        }
        await held.pass();
        return "done";
      },
    };
    const { cluster, a, b } = await two(openGround, plays);
    cluster.ground.cutWire(true);
    const first = await a.app.tell(MAIN, "work");
    await held.reached;
    const second = await b.app.tell(MAIN, "stop me");
    const ended = endOf(b.app.engine, first.runId);
    held.open();
    expect((await ended).state).toBe("ok");
    await until(async () => (await getRun(b.app.store.db, second.runId))?.state === "running");
    await b.app.engine.abort({ sessionKey: MAIN });
    const last = await a.app.tell(MAIN, "work");
    expect((await endOf(b.app.engine, last.runId)).state).toBe("ok");
    cluster.ground.cutWire(false);
  });

  test("B3: if the hint about a run's end is lost, other processes read the end from its row and report it", async () => {
    const { a, b } = await two(openGround, { [MAIN]: () => "done" });
    a.refuseHints(true);
    const run = await a.app.tell(MAIN, "work");
    await endOf(a.app.engine, run.runId);
    a.refuseHints(false);
    const ends = () => b.app.events.filter((event) => event.kind === "run_ended");
    await until(() => ends().length > 0);
    expect(ends()).toMatchObject([{ runId: run.runId, text: "done" }]);
  });

  test("B3: if a process has read a run's end from its row, it does not report the end again when the hint arrives", async () => {
    const { cluster, a, b } = await two(openGround, {
      [MAIN]: ({ handle }) => {
        handle.text(whole("so far"));
        return "done";
      },
    });
    const release = a.holdHints();
    const first = await a.app.tell(MAIN, "work");
    await endOf(a.app.engine, first.runId);
    cluster.ground.gap();
    const kindsOf = (runId: string): string[] =>
      b.app.events.flatMap((event) => ("runId" in event && event.runId === runId ? [event.kind] : []));
    await until(() => kindsOf(first.runId).length > 0);
    release();
    const last = await a.app.tell(MAIN, "more");
    await until(() => kindsOf(last.runId).includes("run_ended"));
    expect(kindsOf(first.runId)).toEqual(["run_ended"]);
  });
}
