// Owns the demo of a gateway: begun when somebody asks, ended when nobody looks any more, and the way of
// pages' WebSockets to it.
// GD1: there is one at most; whoever asks while it is there gets the same.
// GD2: what reaches it is one WebSocket upgrade at its "/", which was judged here like any other; none of its
//      other paths can be asked for.
// GD3: it ends with the gateway, and some minutes after the last page has gone.

import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { fail, ok, type Result } from "../core/errors.ts";
import type { Timer, World } from "../world.ts";
import type { DemoAddress } from "./payloads.ts";

/** Where its WebSocket is, on the gateway's own port. */
export const DEMO_PATH = "/demo";
/** Without a page it goes on this long: a page that is loaded anew finds it again. */
const UNSEEN_MAX_MS = 5 * 60_000;
/** What of an upgrade goes on to the demo; it gets a host of its own, and no origin. */
const PASSED_ON = ["sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol"] as const;
const LOOPBACK = "127.0.0.1";

/** A gateway in this process with configuration and store of its own. */
export interface DemoPlace {
  /** On loopback. */
  readonly port: number;
  readonly token: string;
  /** Nothing of it is left afterwards. */
  close(): Promise<void>;
}

export type OpenDemo = () => Promise<Result<DemoPlace>>;

/** The upgrade as the demo's gateway is to read it. */
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

  /** Sockets of pages that are connected to it. */
  get connections(): number {
    return this.#ways.size;
  }

  get running(): boolean {
    return this.#place !== undefined;
  }

  async start(): Promise<Result<DemoAddress>> {
    if (this.#closed) return fail("shutting_down", "the gateway is stopping");
    this.#place ??= this.#begin();
    const place = this.#place;
    const opened = await this.#opened(place);
    return opened.ok ? ok({ path: DEMO_PATH, token: opened.value.token }) : opened;
  }

  async #begin(): Promise<Result<DemoPlace>> {
    await this.#ending;
    return this.#open();
  }

  /** What became of a beginning. It may have been ended meanwhile, and another one begun. */
  async #opened(place: Promise<Result<DemoPlace>>): Promise<Result<DemoPlace>> {
    let opened: Result<DemoPlace> | undefined;
    try {
      opened = await place;
      return opened;
    } finally {
      if (this.#place === place) {
        // Who asks again may have more luck.
        if (opened?.ok !== true) this.#place = undefined;
        else if (this.#ways.size === 0) this.#watch();
      }
    }
  }

  /** False: there was none. */
  async stop(): Promise<boolean> {
    const place = this.#place;
    this.#place = undefined;
    this.#unseen?.cancel();
    if (place !== undefined) this.#ending = this.#end(place);
    await this.#ending;
    return place !== undefined;
  }

  /** With the gateway: nobody can begin another. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.stop();
  }

  async #end(place: Promise<Result<DemoPlace>>): Promise<void> {
    try {
      const opened = await place;
      // Its goodbye still reaches the pages.
      if (opened.ok) await opened.value.close();
    } catch (error) {
      this.#world.log.error({ err: error }, "the demo did not end in order");
    }
    for (const [page, way] of this.#ways) {
      way.destroy();
      page.destroy();
    }
  }

  /** Hands the socket of an upgrade on. False: there is no demo. */
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

  /** Ends it, if nobody comes for some minutes. */
  #watch(): void {
    const { clock } = this.#world;
    this.#unseen?.cancel();
    this.#unseen = clock.at(clock.now() + UNSEEN_MAX_MS, () => {
      if (this.#ways.size === 0) void this.stop();
    });
  }
}
