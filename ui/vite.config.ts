// Configures the build of the page: `npm run build:page`. The gateway serves dist/ui.
// - Only two small scripts are inlined (src/early.ts, src/early/request.ts), with the styles that they
//   import. For all others the page's content security policy allows only files.
// - The licences of the bundled libraries and of the typeface are included.
// - The first view needs one script. Views that are loaded later have one more each, and share one for what
//   several of them use.

import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build, defineConfig, type HtmlTagDescriptor, type Plugin } from "vite";

const TARGET = "es2022";
/** The built script and the built style sheet in index.html. */
const OWN_FILE = /<(?:script type="module"|link rel="stylesheet").* (?:src|href)="(.*?)".*>/g;

const hashOf = (text: string): string => `sha256-${createHash("sha256").update(text).digest("base64")}`;

/** Builds a script on its own. Returns it, and the styles that it imports. */
async function builtAlone(path: string) {
  const input = fileURLToPath(new URL(path, import.meta.url));
  const built = await build({
    configFile: false,
    logLevel: "warn",
    build: { write: false, target: TARGET, rolldownOptions: { input } },
  });
  if (!("output" in built)) throw new Error(`Vite has not built ${path}.`);
  return built.output;
}

/** Builds a script of index.html, and the styles that it imports, with their hashes. */
async function inlined(
  path: string,
  injectTo: "head" | "body",
  attrs: Readonly<Record<string, string>> = {},
): Promise<HtmlTagDescriptor[]> {
  return (await builtAlone(path)).map((one): HtmlTagDescriptor => {
    const isScript = one.type === "chunk";
    const children = isScript ? `(()=>{${one.code.trim()}})()` : String(one.source).trim();
    const hash = { "data-hash": hashOf(children) };
    return isScript
      ? { tag: "script", attrs: { ...hash, ...attrs }, children, injectTo }
      : { tag: "style", attrs: hash, children, injectTo: "head" };
  });
}

/**
 * Inlines two scripts and their styles, whose hashes the gateway puts into the policy: early/request.ts
 * before the styles, and early.ts at the end. The other files become attributes of early.ts, which requests
 * them.
 */
const earlyScripts: Plugin = {
  name: "early-scripts",
  transformIndexHtml: {
    order: "post",
    async handler(html) {
      const [script, style] = [...html.matchAll(OWN_FILE)].map(([, path = ""]) => path);
      if (script === undefined || style === undefined) throw new Error("The page has no script or no style.");
      const files = { "data-src": script, "data-style": style };
      const tags = [
        ...(await inlined("src/early/request.ts", "head")),
        ...(await inlined("src/early.ts", "body", files)),
      ];
      return { html: html.replaceAll(OWN_FILE, ""), tags };
    },
  },
};

/** Replaces the function that loads parts of the page. */
const ownPreload: Plugin = {
  name: "own-preload",
  transform: {
    filter: { id: /vite\/preload-helper/ },
    handler() {
      const own = fileURLToPath(new URL("src/preload.ts", import.meta.url));
      return { code: `export { preload as __vitePreload } from ${JSON.stringify(own)};`, map: null };
    },
  },
};

/** Builds the service workers of features. Their names stay the same, so that browsers find a new version. */
const serviceWorkers: Plugin = {
  name: "service-workers",
  async generateBundle() {
    const cwd = fileURLToPath(new URL(".", import.meta.url));
    for (const path of globSync("src/features/*/worker.ts", { cwd })) {
      const [script] = await builtAlone(path);
      if (script?.type !== "chunk") throw new Error(`Vite has not built ${path}.`);
      const fileName = `${path.split("/").at(-2)}-worker.js`;
      this.emitFile({ type: "asset", fileName, source: `(()=>{${script.code.trim()}})()` });
    }
  },
};

const typefaceLicense: Plugin = {
  name: "typeface-license",
  generateBundle() {
    const file = fileURLToPath(import.meta.resolve("@fontsource-variable/inter/LICENSE"));
    this.emitFile({ type: "asset", fileName: "inter-license.txt", source: readFileSync(file) });
  },
};

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "/",
  clearScreen: false,
  logLevel: "warn",
  plugins: [earlyScripts, ownPreload, serviceWorkers, typefaceLicense],
  build: {
    target: TARGET,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "index", tags: ["$initial"], priority: 2 },
            { name: "shared", minShareCount: 2, priority: 1 },
          ],
        },
      },
    },
    license: { fileName: "licenses.md" },
  },
});
