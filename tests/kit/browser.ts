// A real browser for the page's tests: headless Chromium, controlled over its own protocol. Any problem on a
// page (an error, a violation of its content security policy, a request to a server other than its gateway)
// fails the test.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import { describe, expect } from "vitest";
import { cleanup } from "./engine/engine.ts";
import { lacks } from "./process/lacks.ts";
import { BROWSER_PATIENCE_MS } from "./until.ts";

/**
 * The headless variant comes first, because a tab of Chromium with a window takes three times as long to
 * start.
 */
const BROWSERS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];
const executablePath = BROWSERS.find(existsSync) ?? "/usr/bin/chromium";
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // One process for all pages, so that the next test's page finds the page's code compiled. That saves a
  // quarter of the browser's processor time.
  "--renderer-process-limit=1",
];

/** Matches a browser's reports of connections that were refused, or cut in the middle of an answer. */
export const CUT =
  /WebSocket|ERR_(CONNECTION|EMPTY_RESPONSE|CONTENT_LENGTH_MISMATCH|INCOMPLETE_CHUNKED_ENCODING)/;

export const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

// Skips the browser tests on machines without Chromium, but never in CI.
export const describeInBrowser = describe.skipIf(lacks("chromium", existsSync(executablePath)));

let browser: Promise<Browser> | undefined;

async function launched(): Promise<Browser> {
  const started = await chromium.launch({ executablePath, args: FLAGS });
  started.once("disconnected", () => {
    browser = undefined;
  });
  return started;
}

/**
 * Returns the only browser of this test process. It is closed when the process ends. Each test gets its own
 * browser context.
 */
function theBrowser(): Promise<Browser> {
  browser ??= launched();
  return browser;
}

/** Closes the browser in a process without a test runner. */
export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = undefined;
}

export interface VisitOptions {
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly dark?: boolean;
  /** Opens the link that the gateway prints, with this token. If absent, opens the page without a token. */
  readonly token?: string;
  /** The path of the page. Default: that of the gateway's page. */
  readonly path?: string;
  /** The route after "#/", for example `flow`. */
  readonly at?: string;
  /** Opens a second tab in this browser context. Both tabs share their storage. */
  readonly context?: BrowserContext;
  /** Matches problems on the page that this test expects. */
  readonly allow?: RegExp;
}

export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Problems on the page so far: errors, policy violations, and requests to other servers. */
  readonly complaints: readonly string[];
}

/** Opens the page of the gateway at the address `http`, such as `http://127.0.0.1:7275`. */
export async function visit(http: string, options: VisitOptions = {}): Promise<Visit> {
  const { viewport = DESKTOP, dark = false, path = "/", token, at, allow } = options;
  const context =
    options.context ??
    (await (
      await theBrowser()
    ).newContext({
      viewport,
      colorScheme: dark ? "dark" : "light",
      reducedMotion: "reduce",
      hasTouch: viewport.width < 600,
      isMobile: viewport.width < 600,
      locale: "en-GB",
      timezoneId: "UTC",
    }));
  // This limit is shorter than a test's, so that a failed wait reports its selector.
  context.setDefaultTimeout(BROWSER_PATIENCE_MS / 2);
  const page = await context.newPage();
  const complaints: string[] = [];
  const note = (text: string): void => {
    if (allow?.test(text) !== true) complaints.push(text);
  };
  page.on("pageerror", (error) => note(`error: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") note(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== http)
      note(`request to ${request.url()}`);
  });
  cleanup(async () => {
    if (options.context === undefined) await context.close();
    // As one text, so that the first line of a failure names the problem.
    expect(complaints.join("\n")).toBe("");
  });
  await page.goto(`${http}${path}${token === undefined ? "" : `#token=${token}`}`);
  if (token !== undefined) await untilConnected(page);
  if (at !== undefined) await page.goto(`${http}/#/${at}`);
  return { page, context, complaints };
}

/** Waits until the page is connected. It shows the gateway's version then; the first rows come before. */
function untilConnected(page: Page): Promise<void> {
  return page.locator(".version:not(:empty)").waitFor({ state: "attached" });
}

/** Waits until the page has its typeface, which it loads after the first view. */
export function untilTypeface(page: Page): Promise<void> {
  return page.evaluate(`new Promise((resolve) => {
    const look = () =>
      [...document.fonts].some(({ family, status }) => /Inter Variable/.test(family) && status === "loaded")
        ? resolve()
        : requestAnimationFrame(look);
    look();
  })`);
}

/** Counts the clicks of a reader. Typing, and Enter after it, are no clicks. */
export function clicksOn() {
  let count = 0;
  return {
    click: async (one: Locator) => {
      count += 1;
      await one.click();
    },
    /** Opens a list, and chooses an option. */
    choose: async (one: Locator, value: string) => {
      count += 2;
      await one.selectOption(value);
    },
    count: () => count,
  };
}

/** Returns how many pixels the page is too wide, or a part of it that should scroll only vertically. */
export function sideways(page: Page): Promise<number> {
  const parts = "html, #view, .split-list, .split-main, .scroller, dialog";
  return page
    .locator(parts)
    .evaluateAll((found) => Math.max(...found.map((part) => part.scrollWidth - part.clientWidth)));
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The colour rules of axe-core. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

interface AxeFinding {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly {
    readonly target: readonly unknown[];
    readonly failureSummary?: string | undefined;
  }[];
}

/** Returns axe-core's findings on the current page. `rules` limits them to these rules. */
function axeFindings(page: Page, rules?: readonly string[]): Promise<AxeFinding[]> {
  return page.evaluate(async (only) => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: readonly AxeFinding[] }> };
    };
    const chosen = only === undefined ? {} : { runOnly: { type: "rule", values: only } };
    const { violations } = await axe.run({ resultTypes: ["violations"], ...chosen });
    return violations.map(({ id, help, nodes }) => ({
      id,
      help,
      nodes: nodes.map(({ target, failureSummary }) => ({ target: target.map(String), failureSummary })),
    }));
  }, rules);
}

/**
 * Returns axe-core's findings on the current page as lines. Checks the colours in the light and in the dark
 * theme. Nothing else depends on the theme.
 */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  // The page keeps the library until it is reloaded.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axeSource);
  const found = await axeFindings(page);
  const isDark = await page.evaluate<boolean>('matchMedia("(prefers-color-scheme: dark)").matches');
  await page.emulateMedia({ colorScheme: isDark ? "light" : "dark" });
  found.push(...(await axeFindings(page, COLOUR_RULES)));
  await page.emulateMedia({ colorScheme: isDark ? "dark" : "light" });
  return found.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target.join(" ")}: ${failureSummary ?? ""}`),
  );
}
