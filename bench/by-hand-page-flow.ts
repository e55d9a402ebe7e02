// Run by hand. Measures how smoothly the three views of a chain scroll: a chain of 5,000 steps between 500
// sessions, a real gateway on the embedded store, and a real Chromium without a graphics processor.
//
//   node bench/by-hand-page-flow.ts [steps, default 5000] [sessions, default 500]

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Page } from "playwright-core";
import { getRun } from "../src/store/queries/runs/runs.ts";
import { openSqlite } from "../src/store/sqlite/sqlite.ts";
import { cleanUp } from "../tests/kit/engine/engine.ts";
import { addressOf, launch, TOKEN, writeHome } from "../tests/kit/process/fleet.ts";
import { fill } from "../tests/ui/flow/fill.ts";
import { buildPage } from "../ui/build.js";
import { world } from "./engine-alone.ts";
import { machine, type Row, table } from "./measure.ts";
import { withGateway } from "./with-gateway.ts";

const [steps = 5_000, sessions = 500] = process.argv.slice(2).map(Number);
const SCROLLS = 400;
const DESKTOP = { width: 1_440, height: 900 };
const PHONE = { width: 390, height: 844 };

const home = mkdtempSync(join(tmpdir(), "parley-flow-"));

// The browser's code is a string, because this file is type-checked for Node, which has no DOM.
const SCROLL = `(async () => {
  const box = document.querySelector(".flow-scroll");
  const gaps = [];
  let last = performance.now();
  for (let at = 0; at < ${SCROLLS}; at++) {
    box.scrollBy(${"at % 2 === 0 ? 40 : 0"}, 120);
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const now = performance.now();
    gaps.push(now - last);
    last = now;
  }
  return gaps;
})()`;

/** Begins a chain in a gateway, and adds the steps to it. Returns its id. */
async function makeChain(): Promise<string> {
  const { runId } = await withGateway(home, {}, ({ client }) => client.agent({ message: "hello" }).done);
  const store = await openSqlite({
    dir: join(home, ".parley", "state"),
    durability: "normal",
    log: world.log,
  });
  const { chainId = "" } = { ...(await getRun(store.db, runId)) };
  await fill(store, Date.now() - steps * 40, chainId, { steps, sessions });
  await store.close();
  return chainId;
}

const rows: Row[] = [];

/** Scrolls one view, and notes the times between its frames. */
async function scrolled(page: Page, view: string, row: string, device: string): Promise<void> {
  await page.getByRole("button", { name: view, exact: true }).click();
  await page.locator(row).nth(2).waitFor();
  const samples = await page.evaluate<number[]>(SCROLL);
  const name = `frames of ${view}, scrolled, ${device}`;
  rows.push({ name, size: `${steps} steps, ${sessions} sessions`, unit: "ms", samples });
}

await buildPage({ ifStale: true });
const chainId = await makeChain();
writeHome(home, { gateway: { port: 0, auth: { token: TOKEN } } });
const gateway = launch(home, ["gateway"]);
const http = await addressOf(gateway);
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
try {
  for (const [device, viewport] of [
    ["desktop", DESKTOP],
    ["phone", PHONE],
  ] as const) {
    const page = await (await browser.newContext({ viewport })).newPage();
    await page.goto(`${http}/#token=${TOKEN}`);
    await page.getByRole("link", { name: "Inbox" }).first().waitFor();
    await page.goto(`${http}/#/flow/${chainId}`);
    await page.locator(".flow-scroll").waitFor();
    if (device === "desktop") {
      await scrolled(page, "Sequence", ".step", device);
      await scrolled(page, "Waterfall", ".waterfall-name", device);
    }
    await scrolled(page, "Steps", ".flow-row", device);
  }
} finally {
  await browser.close();
  gateway.kill("SIGTERM");
  await cleanUp();
  rmSync(home, { recursive: true, force: true });
}
console.log(`${machine()}\n\n${table(rows)}`);
