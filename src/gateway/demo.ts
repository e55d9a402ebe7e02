// Owns the gateway's demo: starts it on request, stops it when no page is connected, and relays pages'
// WebSockets to it.
// GD1: at most one demo runs at a time, and every request gets that demo.
// GD2: the demo is reached only through one checked WebSocket upgrade at its "/"; its other paths are
// unreachable.
// GD3: the demo stops when the gateway stops, or some minutes after the last page disconnected.

import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { DemoAddress } from "../contract/methods/demo.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Timer, World } from "../world.ts";

/** WebSocket path of the demo on the gateway's port. */
export const DEMO_PATH = "/demo";
/**
 * Time after which a demo without a connected page is stopped. A page that is reloaded earlier finds the same
 * demo.
 */
const UNSEEN_MAX_MS = 5 * 60_000;
/** Headers of an upgrade request that are forwarded. The demo gets its own Host header and no Origin. */
const PASSED_ON = ["sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol"] as const;
const LOOPBACK = "127.0.0.1";

/** A gateway in this process with its own configuration and store. */
export interface DemoPlace {
  /** The port on loopback. */
  readonly port: number;
  readonly token: string;
  /** Stops the demo and removes its files. */
  close(): Promise<void>;
}

export type OpenDemo = () => Promise<Result<DemoPlace>>;

/** Writes the upgrade request for the demo's gateway. */
function upgradeText(request: IncomingMessage, port: number): string {
  const passed = PASSED_ON.flatMap((name) => {
    const value = request.headers[name];
    return value === undefined ? [] : [`${name}: ${value}`];
  });
  const lines = ["GET / HTTP/1.1", `host: ${LOOPBACK}:${port}`, "connection: upgrade", "upgrade: websocket"];
  return [...lines, ...passed, "", ""].join("\r\n");
}

export class Demo {
  readonly #open: OpenDemo;
  readonly #world: World;
  readonly #ways = new Map<Duplex, Socket>();
  #place: Promise<Result<DemoPlace>> | undefined;
  #ending: Promise<void> = Promise.resolve();
  #closed = false;
  #unseen: Timer | undefined;

  constructor(open: OpenDemo, world: World) {
    this.#open = open;
    this.#world = world;
  }

  /** Sockets of pages that are connected to the demo. */
  get connections(): number {
    return this.#ways.size;
  }

  get running(): boolean {
    return this.#place !== undefined;
  }

  async start(): Promise<Result<DemoAddress>> {
    if (this.#closed) return fail("shutting_down", "the gateway is stopping; try again in a moment");
    this.#place ??= this.#ending.then(() => this.#open());
    const place = this.#place;
    const opened = await this.#awaitStart(place);
    return opened.ok ? ok({ path: DEMO_PATH, token: opened.value.token }) : opened;
  }

  /** Awaits a start. During this wait, the demo may have been stopped and another one started. */
  async #awaitStart(place: Promise<Result<DemoPlace>>): Promise<Result<DemoPlace>> {
    let opened: Result<DemoPlace> | undefined;
    try {
      opened = await place;
      return opened;
    } finally {
      if (this.#place === place) {
        // Forgets the failed start, so that a retry may succeed.
        if (opened?.ok !== true) this.#place = undefined;
        else if (this.#ways.size === 0) this.#watch();
      }
    }
  }

  /** Returns false if no demo was running. */
  async stop(): Promise<boolean> {
    const place = this.#place;
    this.#place = undefined;
    this.#unseen?.cancel();
    if (place !== undefined) this.#ending = this.#end(place);
    await this.#ending;
    return place !== undefined;
  }

  /** Stops the demo because the gateway stops; no other demo can start after that. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.stop();
  }

  async #end(place: Promise<Result<DemoPlace>>): Promise<void> {
    try {
      const opened = await place;
      // Closing sends the pages a close frame.
      if (opened.ok) await opened.value.close();
    } catch (error) {
      this.#world.log.error({ err: error }, "the demo did not stop cleanly");
    }
    for (const [page, way] of this.#ways) {
      way.destroy();
      page.destroy();
    }
  }

  /** Relays the socket of an upgrade. Returns false if there is no demo. */
  pass(request: IncomingMessage, page: Duplex, head: Buffer): boolean {
    const place = this.#place;
    if (place === undefined) return false;
    void place.then(
      (opened) => (opened.ok ? this.#join(request, page, { head, port: opened.value.port }) : page.destroy()),
      () => page.destroy(),
    );
    return true;
  }

  #join(request: IncomingMessage, page: Duplex, { head, port }: { head: Buffer; port: number }): void {
    if (page.destroyed) return;
    const way = connect(port, LOOPBACK);
    this.#ways.set(page, way);
    this.#unseen?.cancel();
    way.setNoDelay(true);
    way.write(upgradeText(request, port));
    way.write(head);
    page.pipe(way);
    way.pipe(page);
    for (const [one, other] of [
      [page, way],
      [way, page],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
    way.on("close", () => {
      this.#ways.delete(page);
      if (this.#ways.size === 0 && this.running) this.#watch();
    });
  }

  /** Stops the demo if no page connects for some minutes. */
  #watch(): void {
    const { clock } = this.#world;
    this.#unseen?.cancel();
    this.#unseen = clock.after(UNSEEN_MAX_MS, () => {
      if (this.#ways.size === 0) void this.stop();
    });
  }
}
