// Run by hand. Measures the page while three open sessions stream at once:
//
//   npm run build:page && node bench/by-hand-page.ts [SECONDS]
//
// Starts a gateway in a separate process, a model server, and three tabs of one Chromium, each with a session
// that receives an answer. Meanwhile it types into the first tab. Prints for each tab the deltas per second,
// the time from a key to the frame that shows it, tasks longer than 50 ms, frames per second, the processor
// time of its main thread, and whether every letter arrived.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { connect } from "../src/contract/client/node.ts";
import { startModelServer } from "../tests/kit/model-server/server.ts";
import { pause, type Step, text } from "../tests/kit/model-server/steps.ts";
import { addressOf, launch, TOKEN, writeHome } from "../tests/kit/process/fleet.ts";
import { machine, type Row, table } from "./measure.ts";

const SECONDS = Number(process.argv[2] ?? 15);
/**
 * Interval between two pieces of the model's answer. It is shorter than the interval at which the gateway
 * forwards text.
 */
const PIECE_EVERY_MS = 12;
const KEY_EVERY_MS = 60;
const AGENTS = ["main", "research", "ops"];

const WORDS = [
  ..."A paragraph of an answer with **bold words**, `code` and [a link](https://example.com/x) in it. ".split(
    /(?<= )/,
  ),
  "\n\n- one point\n- another\n\n",
  "```ts\nconst answer = 42;\n",
  "```\n\n",
];

const wait = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Returns an answer that streams for the whole measurement. */
function answer(): Step[] {
  const pieces = Math.floor((SECONDS * 1_000) / PIECE_EVERY_MS);
  return Array.from({ length: pieces }, (_, at) => [
    pause(wait(at * PIECE_EVERY_MS)),
    text(WORDS[at % WORDS.length] ?? "", 1),
  ]).flat();
}

interface Seen {
  readonly keysMs: number[];
  readonly longMs: number[];
  readonly frames: number;
}

/**
 * Code that records the browser's measurements in the page. It is a string, because this file is
 * type-checked for Node, which has no DOM.
 */
const WATCH = `{
  const seen = { keysMs: [], longMs: [], frames: 0 };
  window.seen = seen;
  const on = (options, note) =>
    new PerformanceObserver((list) => list.getEntries().forEach(note)).observe(options);
  on({ type: "event", durationThreshold: 16 }, (one) => {
    if (one.name === "keydown") seen.keysMs.push(one.duration);
  });
  on({ type: "longtask" }, (one) => seen.longMs.push(one.duration));
  const count = () => requestAnimationFrame(() => { seen.frames += 1; count(); });
  count();
}`;

const server = await startModelServer(() => answer());
const { id, ...provider } = server.provider("openai-completions");
const home = mkdtempSync(join(tmpdir(), "parley-page-"));
writeHome(home, {
  gateway: { port: 0, auth: { token: TOKEN } },
  models: { providers: { [id]: { ...provider, headers: undefined } } },
  agents: {
    defaults: { model: `${id}/test-model` },
    list: AGENTS.map((name, at) => ({ id: name, ...(at === 0 ? { default: true } : {}) })),
  },
});
const gateway = launch(home, ["gateway", "--port", "0"]);
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});

async function openTab(http: string, agent: string) {
  const page = await context.newPage();
  let deltas = 0;
  page.on("websocket", (socket) =>
    socket.on("framereceived", ({ payload }) => {
      const words = payload.toString();
      if (words.includes('"state":"delta"') && words.includes(`"agent:${agent}:main"`)) deltas += 1;
    }),
  );
  await page.goto(`${http}/#token=${TOKEN}`);
  await page.getByRole("navigation", { name: "Views" }).waitFor();
  await page.goto(`${http}/#/sessions/${encodeURIComponent(`agent:${agent}:main`)}`);
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  await page.evaluate(WATCH);
  const devtools = await context.newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  /** Returns the processor time of the page's main thread in seconds. */
  const busy = async (): Promise<number> => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN;
  };
  return { page, deltas: () => deltas, busy };
}

const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
try {
  const http = await addressOf(gateway);
  const client = await connect({ url: http, token: TOKEN });
  const tabs = [];
  for (const agent of AGENTS) tabs.push(await openTab(http, agent));
  const [first] = tabs;
  if (first === undefined) throw new Error("no tab");
  for (const agent of AGENTS)
    await client.request("chat.send", { sessionKey: `agent:${agent}:main`, message: "go" });
  await first.page.locator(".entry-live").waitFor();
  await first.page.bringToFront();
  const typed = "the quick brown fox jumps over the lazy dog ".repeat(Math.ceil(SECONDS / 4)).trim();
  const before = await Promise.all(tabs.map(({ busy }) => busy()));
  const from = performance.now();
  await first.page
    .getByRole("textbox", { name: "Message" })
    .pressSequentially(typed, { delay: KEY_EVERY_MS });
  const seconds = (performance.now() - from) / 1_000;
  const held = await first.page.getByRole("textbox", { name: "Message" }).inputValue();
  const rows: Row[] = [];
  for (const [at, { page, deltas, busy }] of tabs.entries()) {
    const used = (await busy()) - (before[at] ?? 0);
    const seen = await page.evaluate<Seen>("window.seen");
    const size = `${(deltas() / seconds).toFixed(0)} deltas/s`;
    if (at === 0)
      rows.push({ name: "a key to its picture, those over 16 ms", size, unit: "ms", samples: seen.keysMs });
    rows.push({ name: `tab ${at + 1}: tasks over 50 ms`, size, unit: "ms", samples: seen.longMs });
    const pictures = `${(seen.frames / seconds).toFixed(0)} pictures a second`;
    const work = `${((1_000 * used) / deltas()).toFixed(1)} ms of processor time for each delta`;
    console.log(`tab ${at + 1}: ${pictures}, ${work}, ${((100 * used) / seconds).toFixed(0)} % of a core`);
  }
  console.log(`${machine()}\n${table(rows)}`);
  console.log(
    `${typed.length} letters typed in ${seconds.toFixed(1)} s, ${held === typed ? "all" : "NOT all"} there`,
  );
  client.close();
} finally {
  await browser.close();
  gateway.kill();
  await server.close();
  rmSync(home, { recursive: true, force: true });
}
