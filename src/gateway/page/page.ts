// Serves the web page's built files over HTTP, with the headers that restrict it.
// WP1: only files of the built page's folder are served. Their names come from listing the folder; the path
//      of a request never becomes a part of a file's path.
// WP2: the page runs its own scripts and styles and connects to its own host only. Of scripts and styles in
//      its HTML, it uses only those whose hash the build has written beside them. The page can't be framed,
//      and its address, which may have contained a token, is never sent as a referrer.
// Nothing is read before the first request for the page.

import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const INDEX = "index.html";
/** The name of a built file contains a hash of the content, so a name always stands for the same content. */
const ASSETS = "assets";
const ASSET_CACHE = "public, max-age=31536000, immutable";
/** The other files, too, are shown at once from the cache. An outdated page loads itself again (first.ts). */
const CACHE = "private, max-age=86400";

const TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json",
  png: "image/png",
  svg: "image/svg+xml",
  webmanifest: "application/manifest+json",
  woff2: "font/woff2",
};

/** Minimum size of a file that is compressed. */
const GZIP_MIN_BYTES = 1_024;
/** A smaller window of symbols than usual makes the scripts smaller. */
const PACKING = { level: 9, memLevel: 7 };

interface PageFile {
  readonly type: string;
  readonly etag: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly packed: Uint8Array<ArrayBuffer> | undefined;
  readonly cache: string;
  /** Sources of the scripts and styles that this file of HTML contains, for the policy. */
  readonly inline: Readonly<Record<"script" | "style", string>>;
}

export interface Page {
  /** Answers a GET or HEAD of a page file. Returns undefined if there is no such file. */
  answer(request: Request): Promise<Response | undefined>;
  /** Returns the path of the script with which the built page starts. */
  script(): Promise<string | undefined>;
}

/** Returns the sources of the inline scripts or styles whose hashes the build has declared. */
function inlineSources(tag: "script" | "style", html: string): string {
  const found = html.matchAll(new RegExp(`<${tag} data-hash="(sha256-[\\w+/=]+)"`, "g"));
  return [...found].map(([, hash]) => ` '${hash}'`).join("");
}

async function readOne(path: string, cache: string): Promise<PageFile> {
  const bytes = new Uint8Array(await readFile(path));
  const type = TYPES[path.slice(path.lastIndexOf(".") + 1)] ?? "application/octet-stream";
  const packs = /^text|json|svg/.test(type) && bytes.length >= GZIP_MIN_BYTES;
  const html = type === TYPES.html ? Buffer.from(bytes).toString() : "";
  return {
    type,
    cache,
    bytes,
    etag: `"${createHash("sha256").update(bytes).digest("hex").slice(0, 32)}"`,
    inline: { script: inlineSources("script", html), style: inlineSources("style", html) },
    packed: packs ? new Uint8Array(gzipSync(bytes, PACKING)) : undefined,
  };
}

/** Reads the files of a built page, by request path. The map is empty if the page was never built. */
async function readPage(dir: string): Promise<Map<string, PageFile>> {
  const files = new Map<string, PageFile>();
  const names = await readdir(dir).catch(() => []);
  for (const name of names.filter((one) => one !== ASSETS)) {
    files.set(name === INDEX ? "/" : `/${name}`, await readOne(join(dir, name), CACHE));
  }
  for (const name of await readdir(join(dir, ASSETS)).catch(() => [])) {
    files.set(`/${ASSETS}/${name}`, await readOne(join(dir, ASSETS, name), ASSET_CACHE));
  }
  return files;
}

/** Serves the web page that was built into `dir`. */
export function createPage(dir: string): Page {
  let files: Promise<Map<string, PageFile>> | undefined;
  const read = async (): Promise<Map<string, PageFile>> => {
    files ??= readPage(dir);
    let found: Map<string, PageFile> | undefined;
    try {
      found = await files;
      return found;
    } finally {
      // The folder is read again next time, because the page may be built while the gateway runs.
      if (found === undefined || found.size === 0) files = undefined;
    }
  };
  return {
    async script() {
      const html = (await read()).get("/")?.bytes;
      return /<script[^>]* data-src="([^"]+)"/.exec(new TextDecoder().decode(html))?.[1];
    },
    async answer(request) {
      const { pathname, host } = new URL(request.url);
      const file = (await read()).get(pathname);
      if (file === undefined) return undefined;
      // For some browsers 'self' covers http only, so the WebSocket's address is listed as well.
      const sockets = /^[\w.:[\]-]+$/.test(host) ? ` ws://${host} wss://${host}` : "";
      const headers = {
        "content-security-policy": [
          "default-src 'none'",
          `script-src 'self'${file.inline.script}`,
          `style-src 'self'${file.inline.style}`,
          "img-src 'self' data:",
          "font-src 'self'",
          "manifest-src 'self'",
          `connect-src 'self'${sockets}`,
          "base-uri 'none'",
          "form-action 'none'",
          "frame-ancestors 'none'",
          "require-trusted-types-for 'script'",
          // The only policy: it names the script that shows notifications while no page is open.
          "trusted-types parley",
        ].join("; "),
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "content-type": file.type,
        "cache-control": file.cache,
        etag: file.etag,
        vary: "accept-encoding",
      };
      if (request.headers.get("if-none-match") === file.etag)
        return new Response(null, { status: 304, headers });
      const packs = /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
      if (file.packed === undefined || !packs) return new Response(file.bytes, { headers });
      return new Response(file.packed, { headers: { ...headers, "content-encoding": "gzip" } });
    },
  };
}
