// Builds the site of the documents (site/), and opens it in a browser. `npm run site` installs its packages.

import { execFile } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { DESKTOP, PHONE, visit } from "../kit/browser.ts";
import { cleanup } from "../kit/cleanup.ts";
import { lacks } from "../kit/process/lacks.ts";
import { PAGES, ROOT, readDocument } from "./pages.ts";

const SITE = join(ROOT, "site");
const BUILT = join(SITE, ".vitepress/dist");
const BASE = "/parley/";
const REPOSITORY = "https://github.com/parley-gateway/parley";
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

/** Serves the built site as GitHub Pages does: an address without an ending is that of an HTML file. */
async function serve(): Promise<string> {
  const server = createServer(({ url = "/" }, response) => {
    const { pathname } = new URL(url, "http://site");
    const path = decodeURIComponent(pathname).replace(BASE, "/").replace(/\/$/, "/index.html");
    const file = [join(BUILT, path), `${join(BUILT, path)}.html`].find(
      (one) => extname(one) !== "" && existsSync(one),
    );
    if (file === undefined) return void response.writeHead(404).end();
    response.setHeader("content-type", TYPES[extname(file)] ?? "application/octet-stream");
    response.end(readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const readBuilt = (path: string): string => readFileSync(join(BUILT, path), "utf8");

// The site has its own packages: .ci/run installs them.
describe.skipIf(lacks("site", existsSync(join(SITE, "node_modules/vitepress"))))(
  "the site of the documents",
  () => {
    let output = "";
    beforeAll(async () => {
      const vitepress = join(SITE, "node_modules/vitepress/bin/vitepress.js");
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [vitepress, "build"], {
        cwd: SITE,
      });
      output = stdout + stderr;
    });

    test("the site is built without an error, with a page for each document", () => {
      expect(output).not.toMatch(/error/i);
      const pages = globSync("**/*.html", { cwd: BUILT });
      // ui/README.md is for developers of the page, and 404.html is no document.
      expect(pages).toHaveLength(PAGES.length - 1 + 1);
    });

    test("the site has no dead link: each leads to a page and an anchor of the site, or to a file of the repository", () => {
      const paths = globSync("**/*.html", { cwd: BUILT });
      const texts = new Map(
        paths.map((path) => [path.replace(/(^|\/)index\.html$|\.html$/, "$1"), readBuilt(path)]),
      );
      expect(deadLinks(texts)).toEqual([]);
      const bad = ["/parley/tour#none", "/parley/none", `${REPOSITORY}/blob/main/none.ts`];
      const planted = bad.map((href) => `<a class="a" href="${href}">`).join("");
      expect(deadLinks(new Map([...texts, ["planted", planted]]))).toEqual(
        bad.map((href) => `planted: ${href}`),
      );
    });

    test("the site has the documents for language models", () => {
      const list = readBuilt("llms.txt");
      expect(list).toMatch(/^# Parley\n\n> .+\n\n- \[/);
      const files = [...list.matchAll(/\]\(https:\/\/parley-gateway\.github\.io\/parley\/(.+?)\)/g)];
      expect(files.length).toBeGreaterThan(50);
      for (const [, file = ""] of files) expect(readBuilt(file)).not.toBe("");
      for (const path of ["README.md", "docs/TOUR.md", "docs/reference/TOOLS.md"])
        expect(readBuilt("llms-full.txt")).toContain(readDocument(path).trim());
    });

    test.each([
      { name: "light", viewport: DESKTOP, dark: false },
      { name: "dark", viewport: DESKTOP, dark: true },
      { name: "on a phone", viewport: PHONE, dark: false },
    ])(
      "its first page has the picture, two commands, join and the recording: $name",
      async ({ viewport, dark }) => {
        const { page } = await visit(await serve(), { viewport, dark, path: BASE });
        const width = `document.querySelector('img[src*="chain-desktop-light"]').naturalWidth`;
        await expect.poll(() => page.evaluate(width)).toBeGreaterThan(0);
        const [commands = ""] =
          /(?<=```sh\n).+\n.+/.exec(readDocument("README.md").split("## Start")[1] ?? "") ?? [];
        for (const line of commands.split("\n"))
          await expect
            .poll(() => page.locator("pre").allInnerTexts())
            .toContainEqual(expect.stringContaining(line));
        await expect
          .poll(() => page.locator("code").allInnerTexts())
          .toContain("npx parley-gateway join claude-code");
        await expect.poll(() => page.locator(".ap-term").innerText()).toContain("All 7 steps passed");
        expect(await isWide(page)).toBe(false);
      },
    );

    test("its search finds a tool by its name", async () => {
      const { page } = await visit(await serve(), { path: BASE });
      await page.locator(".VPNavBarSearch button").first().click();
      await page.locator(".VPLocalSearchBox input").fill("sessions_send");
      await expect
        .poll(() => page.locator(".VPLocalSearchBox .result").first().innerText())
        .toContain("sessions_send");
      await page.locator(".VPLocalSearchBox .result").first().click();
      await expect.poll(() => page.url()).toContain("/parley/reference/tools#sessions_send");
    });

    test("it draws diagrams", async () => {
      const { page } = await visit(await serve(), { path: `${BASE}internals/flows` });
      await expect.poll(() => page.locator(".diagram svg").count()).toBeGreaterThan(3);
    });
  },
);

/** Returns the links of pages that lead to nothing. The key of a page is its address below the base. */
function deadLinks(pages: ReadonlyMap<string, string>): string[] {
  const anchors = new Map(
    [...pages].map(([page, text]) => [
      page,
      new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)),
    ]),
  );
  const isDead = (from: string, href: string): boolean => {
    if (href.startsWith(REPOSITORY)) {
      const [, file] = /\/(?:blob|tree)\/main\/([^#]+)/.exec(href) ?? [];
      return file !== undefined && !existsSync(join(ROOT, file));
    }
    if (/^[a-z]+:/.test(href)) return false;
    const { pathname, hash } = new URL(href, `http://site${BASE}${from}`);
    const path = pathname.replace(BASE, "");
    const ids = anchors.get(path);
    if (ids === undefined) return !existsSync(join(BUILT, path));
    return hash !== "" && !ids.has(decodeURIComponent(hash.slice(1)));
  };
  return [...pages].flatMap(([from, text]) => {
    const links = new Set([...text.matchAll(/<a [^>]*?href="([^"]+)"/g)].map(([, href = ""]) => href));
    return [...links].filter((href) => isDead(from, href)).map((href) => `${from}: ${href}`);
  });
}

/** Returns true if the page is wider than its window. */
const isWide = (page: Page): Promise<boolean> =>
  page.evaluate<boolean>("document.documentElement.scrollWidth > innerWidth");
