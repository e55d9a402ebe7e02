// Run by hand. Measures how quickly the page shows its tree of sessions, on this machine and over a slow
// line, and how smoothly it scrolls with many of them: a real Chromium, and a real gateway on the embedded
// store.
//
//   node bench/by-hand-page-sessions.ts [sessions, default 1000] [loads, default 15] [--line | --throttle]
//
// With `--line` it measures only the slow line: 30 KB per second, shared by all connections, and 800 ms for
// a round trip, which the handshake of a TCP connection costs, too. Lost packets and TCP's slow start are
// not imitated, nor that a browser waits for a handshake before it chooses a connection. `--throttle`
// measures the same with the browser's own throttling, as in its developer tools: 800 ms pass before the
// answer to each request, and a connection costs nothing. "Warm": the browser has shown the page before, in
// another tab whose connections have ended. "Reloaded": the reader presses F5, after which a browser asks
// whether its copy of the page is current.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import { connect } from "../src/contract/client/node.ts";
import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import { openSqlite } from "../src/store/sqlite/sqlite.ts";
import { cleanUp } from "../tests/kit/engine/engine.ts";
import { addressOf, launch, TOKEN, writeHome } from "../tests/kit/process/fleet.ts";
import { openLine } from "../tests/ui/line.ts";
import { buildPage } from "../ui/build.js";
import { world } from "./engine-alone.ts";
import { chatKey, sessionRow } from "./instant.ts";
import { machine, type Row, table } from "./measure.ts";

const typed = process.argv.slice(2);
const [sessions = 1_000, loads = 15] = typed.filter((one) => !one.startsWith("--")).map(Number);
const BYTES_PER_SECOND = 30_000;
const ROUND_TRIP_MS = 800;
/** Runs that fill the inbox. */
const RUNS = 30;
/** Sessions per tree: one root, and the sessions that it spawned. */
const FAMILY = sessions > 10_000 ? 20 : 4;
const ROWS_OF_A_TRANSACTION = 5_000;
const SCROLLS = 300;

const home = mkdtempSync(join(tmpdir(), "parley-page-"));

async function fill(): Promise<void> {
  const dir = join(home, ".parley", "state");
  const store = await openSqlite({
    dir,
    durability: "normal",
    log: world.log,
  });
  for (let from = 0; from < sessions; from += ROWS_OF_A_TRANSACTION) {
    await store.transaction(async (tx) => {
      for (let at = from; at < Math.min(sessions, from + ROWS_OF_A_TRANSACTION); at++) {
        const spawnedBy = at % FAMILY === 0 ? {} : { spawnedBy: chatKey(at - (at % FAMILY)), spawnDepth: 1 };
        const used = { totalTokens: at * 37, cost: at / 1_000 };
        await insertSession(tx, { ...sessionRow(chatKey(at), at), ...used, ...spawnedBy });
      }
    });
  }
  await store.close();
}

const rows: Row[] = [];
function note(name: string, samples: readonly number[]): void {
  rows.push({ name, size: `${sessions} sessions`, unit: "ms", samples });
}

// The browser's code is a string, because this file is type-checked for Node, which has no DOM.
const mark = (name: string, selector: string): string => `window.${name} = new Promise((resolve) => {
  new MutationObserver((_, observer) => {
    if (document.querySelector("${selector}") === null) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
  }).observe(document, { childList: true, subtree: true });
});`;
const MARK_ROWS = mark("rowsShown", ".session-row") + mark("inboxShown", ".inbox-row");
const SCROLL = `(async () => {
  const list = document.querySelector(".session-list");
  const gaps = [];
  let last = performance.now();
  for (let at = 0; at < ${SCROLLS}; at++) {
    list.scrollTop += 240;
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const now = performance.now();
    gaps.push(now - last);
    last = now;
  }
  return gaps;
})()`;
const COUNT = `[".session-row", "*"].map((one) => document.querySelectorAll(one).length).join(" of ")`;

/** Returns the time from the start of a navigation, without a cache, until the first rows are visible. */
async function firstRows(page: Page): Promise<number> {
  await page.addInitScript(MARK_ROWS);
  await page.goto(`${http}/#token=${TOKEN}`);
  return page.evaluate<number>("window.rowsShown");
}

interface Shown {
  readonly rows: number;
  readonly inbox: number;
}

/** Returns when a page has shown rows of the list and of the inbox, after `begin` has begun to load it. */
async function shownAfter(page: Page, begin: () => Promise<unknown>): Promise<Shown> {
  await begin();
  const rows = await page.evaluate<number>("window.rowsShown");
  return { rows, inbox: await page.evaluate<number>("window.inboxShown") };
}

/** A slow way from the browser to the gateway. */
interface Slow {
  readonly name: string;
  readonly http: string;
  /** Slows down the data for a page. Returns a function that ends this. */
  begin(page: Page): Promise<() => Promise<void>>;
  /** Ends all connections. */
  cut(): void;
}

async function slowLine(port: number): Promise<Slow> {
  const line = await openLine(port);
  return {
    name: "slow line",
    http: line.http,
    async begin() {
      line.slow(BYTES_PER_SECOND, ROUND_TRIP_MS);
      return async () => line.slow(0);
    },
    cut: line.cut,
  };
}

const throttling = (): Slow => ({
  name: "throttled",
  http,
  async begin(page) {
    const tools = await page.context().newCDPSession(page);
    await tools.send("Network.enable");
    await tools.send("Network.emulateNetworkConditions", {
      offline: false,
      latency: ROUND_TRIP_MS,
      downloadThroughput: BYTES_PER_SECOND,
      uploadThroughput: BYTES_PER_SECOND,
    });
    return () => tools.detach();
  },
  cut() {},
});

/** Loads the inbox slowly: with an empty cache, in a new tab with a full one, and once again. */
async function overSlowLine(slow: Slow): Promise<void> {
  const shown: Record<"cold" | "warm" | "reloaded", Shown[]> = { cold: [], warm: [], reloaded: [] };
  const load = async (context: BrowserContext, into: Shown[]): Promise<Page> => {
    const page = await context.newPage();
    const end = await slow.begin(page);
    await page.addInitScript(MARK_ROWS);
    const link = `${slow.http}/#token=${TOKEN}`;
    into.push(await shownAfter(page, () => page.goto(link, { waitUntil: "commit" })));
    await end();
    await page.waitForLoadState("networkidle");
    return page;
  };
  for (let at = 0; at < loads; at++) {
    const context = await browser.newContext();
    const first = await load(context, shown.cold);
    await first.close();
    slow.cut();
    const page = await load(context, shown.warm);
    slow.cut();
    const end = await slow.begin(page);
    shown.reloaded.push(await shownAfter(page, () => page.reload({ waitUntil: "commit" })));
    await end();
    await context.close();
  }
  for (const [name, times] of Object.entries(shown)) {
    note(
      `${slow.name}, ${name}: first rows of the list`,
      times.map(({ rows }) => rows),
    );
    note(
      `${slow.name}, ${name}: first rows of the inbox`,
      times.map(({ inbox }) => inbox),
    );
  }
}

/** Returns the times between frames while the list scrolls down. */
const scrolled = (page: Page): Promise<number[]> => page.evaluate<number[]>(SCROLL);

await buildPage({ ifStale: true });
writeHome(home, { gateway: { port: 0, auth: { token: TOKEN } } });
await fill();
const gateway = launch(home, ["gateway"]);
const http = await addressOf(gateway);
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
async function onThisMachine(): Promise<void> {
  const times: number[] = [];
  for (let load = 0; load < loads; load++) {
    const context = await browser.newContext();
    times.push(await firstRows(await context.newPage()));
    await context.close();
  }
  note("first rows of the tree (aim: 1000 ms)", times);

  const page = await (await browser.newContext()).newPage();
  await firstRows(page);
  const client = await connect({ url: http, token: TOKEN });
  let stop = false;
  const busy = (async () => {
    for (let n = 0; !stop; n++) {
      const sessionKey = chatKey((n * FAMILY * 7) % sessions);
      await client.agent({ message: "say hello", sessionKey, idempotencyKey: `busy ${n}` }).done;
    }
  })();
  note("frames of the tree scrolled down, runs going on", await scrolled(page));
  await page.getByRole("button", { name: "List" }).click();
  await page.locator(".session-row").first().waitFor();
  note("frames of the list scrolled down, runs going on", await scrolled(page));
  console.log(`rows in the document, of its elements: ${await page.evaluate(COUNT)}`);
  const begin = performance.now();
  const rare = `conversation ${sessions - 3}`;
  await page.getByLabel("Search sessions").fill(rare);
  await page.locator(".session-name", { hasText: rare }).waitFor();
  note("a search, from the last letter to its rows", [performance.now() - begin]);
  stop = true;
  await busy;
  client.close();
}

try {
  const client = await connect({ url: http, token: TOKEN });
  for (let at = 0; at < RUNS; at++)
    await client.agent({
      message: "say hello",
      sessionKey: chatKey(at * FAMILY),
      idempotencyKey: `run ${at}`,
    }).done;
  client.close();
  if (typed.includes("--throttle")) await overSlowLine(throttling());
  else {
    if (!typed.includes("--line")) await onThisMachine();
    await overSlowLine(await slowLine(Number(new URL(http).port)));
  }
  console.log(`${machine()}\n\n${table(rows)}`);
} finally {
  await browser.close();
  await cleanUp();
  gateway.kill("SIGTERM");
  rmSync(home, { recursive: true, force: true });
}
