// A real browser for the page's tests: Debian's Chromium without windows, driven over its own protocol. Whatever a
// page complains of (an error, a refusal of its policy, a request to anybody but its gateway) fails the test.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { describe, expect } from "vitest";
import { cleanup } from "./engine.ts";

/** The first without a window's own pages, which take three quarters of the time of a tab. */
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
];

const WAIT_MAX_MS = 20_000;

export const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

// Without a Chromium there is nothing to drive: such tests are skipped, never in CI.
export const describeInBrowser = describe.skipIf(!existsSync(executablePath) && process.env.CI !== "true");

let browser: Promise<Browser> | undefined;

async function launched(): Promise<Browser> {
  const started = await chromium.launch({ executablePath, args: FLAGS });
  started.once("disconnected", () => {
    browser = undefined;
  });
  return started;
}

/** One browser for a process of tests, which it ends with; its contexts are as separate as two people's. */
function theBrowser(): Promise<Browser> {
  browser ??= launched();
  return browser;
}

/** For a process without a test runner. */
export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = undefined;
}

export interface VisitOptions {
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly dark?: boolean;
  /** Signs in by the link that the gateway prints. Absent: the page is opened without a token. */
  readonly token?: string;
  /** Behind "#/", such as `flow`. */
  readonly at?: string;
  /** A tab of a reader who has others open: what they share, they share. */
  readonly context?: BrowserContext;
  /** Complaints that this test is about. */
  readonly allow?: RegExp;
}

export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the page complained of so far. */
  readonly complaints: readonly string[];
}

/** Opens the page of the gateway at `http` (like `http://127.0.0.1:7275`) as a reader does. */
export async function visit(http: string, options: VisitOptions = {}): Promise<Visit> {
  const { viewport = DESKTOP, dark = false, token, at, allow } = options;
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
  // Less than a test may take, so that what was waited for in vain is named.
  context.setDefaultTimeout(WAIT_MAX_MS);
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
    expect(complaints).toEqual([]);
  });
  await page.goto(`${http}/${token === undefined ? "" : `#token=${token}`}`);
  if (token !== undefined) await page.getByRole("navigation", { name: "Views" }).waitFor();
  if (at !== undefined) await page.goto(`${http}/#/${at}`);
  return { page, context, complaints };
}

/** Pixels by which the page, or a part of it that scrolls downwards only, is wider than its place. */
export function sideways(page: Page): Promise<number> {
  const parts = "html, #view, .split-list, .split-main, .scroller, dialog";
  return page
    .locator(parts)
    .evaluateAll((found) => Math.max(...found.map((part) => part.scrollWidth - part.clientWidth)));
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe-core judges by colours. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

interface AxeFinding {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly {
    readonly target: readonly unknown[];
    readonly failureSummary?: string | undefined;
  }[];
}

/** What axe-core finds wrong on the page as it is now; by `rules` alone, if they are given. */
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
 * What axe-core finds wrong on the page as it is now, in lines; nothing: an empty list. Colours are looked at in
 * the light and in the dark: nothing else of the page depends on which of them it is.
 */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  await page.evaluate(axeSource);
  const found = await axeFindings(page);
  const isDark = await page.evaluate<boolean>('matchMedia("(prefers-color-scheme: dark)").matches');
  await page.emulateMedia({ colorScheme: isDark ? "light" : "dark" });
  found.push(...(await axeFindings(page, COLOUR_RULES)));
  await page.emulateMedia({ colorScheme: isDark ? "dark" : "light" });
  return found.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target.join(" ")}: ${failureSummary ?? ""}`),
  );
}
