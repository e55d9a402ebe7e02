// The files of the web page over HTTP, and the restrictions in their headers.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createPage } from "../../../src/gateway/page/page.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { openHouse } from "../kit.ts";

const get = (path: string, headers: Record<string, string> = {}) =>
  new Request(`http://127.0.0.1:7275${path}`, { headers });

function builtPage(): string {
  const dir = join(temporaryFolder(), "ui");
  mkdirSync(join(dir, "assets"), { recursive: true });
  writeFileSync(join(dir, "index.html"), "<!doctype html><title>page</title>");
  writeFileSync(join(dir, "assets", "index-abc.js"), `console.log("${"a".repeat(4_000)}");`);
  return dir;
}

test("WP2: the page runs its own scripts and its two inline scripts, can't be framed, and leaks no address", async () => {
  const { http } = await openHouse();
  const answer = await fetch(`${http}/`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
  const policy = answer.headers.get("content-security-policy") ?? "";
  expect(policy.split("; ")).toEqual(expect.arrayContaining(["default-src 'none'", "base-uri 'none'"]));
  expect(policy).not.toMatch(/unsafe|\*/);
  expect(policy).toContain("frame-ancestors 'none'");
  expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
  const html = await answer.text();
  for (const [tag, count] of [
    ["script", 2],
    ["style", 1],
  ] as const) {
    const inline = [...html.matchAll(new RegExp(`<${tag}(?![^>]* src=)[^>]*>([^]*?)</${tag}>`, "g"))];
    const hashes = inline.map(([, code = ""]) => createHash("sha256").update(code).digest("base64"));
    expect(hashes).toHaveLength(count);
    const sources = hashes.map((hash) => ` 'sha256-${hash}'`).join("");
    expect(policy).toContain(`; ${tag}-src 'self'${sources}; `);
  }
  expect(html).not.toMatch(/ style=| on\w+=/);
});

test("the policy allows no inline script and no inline style if the build has declared none", async () => {
  const dir = builtPage();
  writeFileSync(join(dir, "index.html"), "<!doctype html><script>stranger()</script><style>*{}</style>");
  const answer = await createPage(dir).answer(get("/"));
  expect(answer?.headers.get("content-security-policy")).toContain("; script-src 'self'; style-src 'self'; ");
});

test("WP1: whatever path is requested, only files of the build are served", async () => {
  const dir = builtPage();
  symlinkSync("/etc/hostname", join(dir, "..", "outside"));
  const page = createPage(dir);
  expect((await page.answer(get("/")))?.headers.get("cache-control")).toBe("private, max-age=86400");
  expect((await page.answer(get("/assets/index-abc.js")))?.headers.get("cache-control")).toContain(
    "immutable",
  );
  for (const path of ["/assets/", "/index.html", "/..%2foutside", "/%00", "/assets/x"])
    expect(await page.answer(get(path)), path).toBeUndefined();
});

test("a browser with a cached file gets 304, and one that accepts gzip gets a compressed file", async () => {
  const page = createPage(builtPage());
  const first = await page.answer(get("/assets/index-abc.js"));
  const packed = await page.answer(get("/assets/index-abc.js", { "accept-encoding": "br, gzip" }));
  expect(packed?.headers.get("content-encoding")).toBe("gzip");
  expect((await packed?.arrayBuffer())?.byteLength).toBeLessThan(200);
  const etag = first?.headers.get("etag") ?? "";
  expect((await page.answer(get("/assets/index-abc.js", { "if-none-match": etag })))?.status).toBe(304);
});

test("if the page is not built, its address says so, and serves the page once it is built", async () => {
  const dir = temporaryFolder();
  const page = createPage(dir);
  expect(await page.answer(get("/"))).toBeUndefined();
  writeFileSync(join(dir, "index.html"), "<!doctype html>");
  expect((await page.answer(get("/")))?.status).toBe(200);
});

test("an unknown host name gets no page", async () => {
  const { port } = await openHouse();
  const status = await new Promise((resolve, reject) => {
    const sent = request({ port, host: "127.0.0.1", headers: { host: "evil.example" } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    sent.on("error", reject).end();
  });
  expect(status).toBe(403);
});

test("the first view of the page is less than 60 kB compressed, without its typeface", async () => {
  const page = fileURLToPath(new URL("../../../dist/ui/", import.meta.url));
  const served = createPage(page);
  const packed = async (path: string): Promise<number> => {
    const answer = await served.answer(get(path, { "accept-encoding": "gzip" }));
    return (await answer?.arrayBuffer())?.byteLength ?? Number.POSITIVE_INFINITY;
  };
  const html = readFileSync(join(page, "index.html"), "utf8");
  const files = [...html.matchAll(/(?:src|href|style)="(\/assets\/[^"]+\.(?:js|css))"/g)].map(
    ([, path = ""]) => path,
  );
  expect(files).toEqual([expect.stringMatching(/\.js$/), expect.stringMatching(/\.css$/)]);
  const first = await Promise.all(["/", ...files].map(packed));
  expect(first.reduce((sum, one) => sum + one, 0)).toBeLessThan(60_000);
});

test("if a file disappears while it is read, only that request fails", async () => {
  const dir = builtPage();
  const torn = join(dir, "torn.js");
  symlinkSync(join(dir, "not-there"), torn);
  const page = createPage(dir);
  await expect(page.answer(get("/"))).rejects.toThrow("ENOENT");
  rmSync(torn);
  expect((await page.answer(get("/")))?.status).toBe(200);
});

test("HEAD is answered like GET, for every file", async () => {
  const { http } = await openHouse();
  const [, script = ""] = /src="(\/assets\/[^"]+)"/.exec(await (await fetch(`${http}/`)).text()) ?? [];
  for (const path of ["/", script]) {
    const answer = await fetch(http + path, { method: "HEAD" });
    expect(answer.status, path).toBe(200);
    expect(answer.headers.get("content-security-policy"), path).toContain("default-src 'none'");
    expect(await answer.text()).toBe("");
  }
  expect((await fetch(`${http}/assets/none.js`, { method: "HEAD" })).status).toBe(404);
});
