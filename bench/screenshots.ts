// Takes pictures of every view of the web page: `npm run screenshots`. Starts a gateway of this checkout with
// its own home, fills it with messages, and captures each view on a desktop, on a phone and at 200 % zoom, in
// light and dark. With `--docs` it takes those that docs/PAGE.md shows, and writes them to docs/screenshots.

import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { closeBrowser, DESKTOP, PHONE, untilTypeface, visit } from "../tests/kit/browser.ts";
import { cleanUp } from "../tests/kit/engine/engine.ts";
import { PAGE_VIEWS, type PageView, STORY_CONFIG, showView, tellStory } from "../tests/kit/page-views.ts";
import { type GatewayProcess, startProcess } from "../tests/kit/process/gateway-process.ts";
import { typed } from "../tests/kit/typed.ts";
import { buildPage } from "../ui/build.js";
import { smallPng } from "./small-png.ts";

const KEPT = fileURLToPath(new URL("../docs/screenshots/", import.meta.url));

const SHAPES = [
  { name: "desktop", viewport: DESKTOP },
  { name: "phone", viewport: PHONE },
  // A desktop at a zoom of 200 %.
  { name: "zoomed", viewport: { width: DESKTOP.width / 2, height: DESKTOP.height / 2 } },
] as const;

const USAGE = `npm run screenshots -- [options]
  --dir DIR          folder to write to (default: a temporary folder)
  --only NAME,NAME   take only these views
  --docs             take the pictures that docs/PAGE.md shows, and write them to docs/screenshots`;
const values = typed(USAGE, {
  dir: { type: "string" },
  only: { type: "string", default: "" },
  docs: { type: "boolean", default: false },
});
const page = readFileSync(new URL("../docs/PAGE.md", import.meta.url), "utf8");
const keep = values.docs ? [...page.matchAll(/screenshots\/([\w-]+)\.png/g)].map(([, name]) => name) : [];
const only = values.only.split(",").filter((one) => one !== "");
const dir = values.dir ?? mkdtempSync(join(tmpdir(), "parley-screenshots-"));
const wanted = PAGE_VIEWS.filter(({ name }) => only.length === 0 || only.includes(name));

function save(name: string, png: Buffer): void {
  const small = smallPng(png);
  writeFileSync(join(dir, `${name}.png`), small);
  if (keep.includes(name)) writeFileSync(join(KEPT, `${name}.png`), small);
  process.stdout.write(
    `${name}  ${Math.round(small.length / 1024)} KiB (${Math.round(png.length / 1024)})\n`,
  );
}

async function take(page: Page, name: string): Promise<void> {
  await untilTypeface(page);
  save(name, await page.screenshot({ animations: "disabled", caret: "hide" }));
}

type Facts = Awaited<ReturnType<typeof tellStory>>;

async function takeAll(gateway: GatewayProcess, views: readonly PageView[], facts?: Facts): Promise<void> {
  for (const { name: shape, viewport } of SHAPES) {
    for (const dark of [false, true]) {
      for (const view of views) {
        const name = `${view.name}-${shape}-${dark ? "dark" : "light"}`;
        if (values.docs && !keep.includes(name)) continue;
        const token = view.signedOut === true ? {} : { token: gateway.token };
        const { page, context } = await visit(gateway.httpUrl, { viewport, dark, ...token });
        await showView(page, gateway.httpUrl, view, facts);
        await take(page, name);
        await context.close();
      }
    }
  }
}

mkdirSync(dir, { recursive: true });
mkdirSync(KEPT, { recursive: true });
try {
  await buildPage({ ifStale: true });
  const gateway = await startProcess({ config: STORY_CONFIG });
  const client = await gateway.connect();
  const isEarly = ({ unused, signedOut }: PageView): boolean => unused === true || signedOut === true;
  await takeAll(gateway, wanted.filter(isEarly));
  const { methods } = client.hello.features;
  const facts = await tellStory(client);
  await takeAll(
    gateway,
    wanted.filter((view) => !isEarly(view) && (view.needs === undefined || methods.includes(view.needs))),
    facts,
  );
  process.stdout.write(`${dir}\n`);
} finally {
  await cleanUp();
  await closeBrowser();
}
