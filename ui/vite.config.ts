// Configures the build of the page: `npm run build:page`. The gateway serves dist/ui.
// - Only two small scripts are inlined (src/early.ts, src/early/request.ts), with the styles that they
//   import. For all others the page's content security policy allows only files.
// - The licences of the bundled libraries and of the typeface are included.
// - The first view needs one script. Views that are loaded later have one more each, and share one for what
//   several of them use. Small parts that are loaded later share one, too, because it compresses better.

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

/** The sets of rules of marked's lexer: for each dialect the name of an object. */
const DIALECTS = /\{normal:([\w$]+),gfm:([\w$]+)(?:,\w+:[\w$]+)*\}/g;
/** The start of a declaration in a list of them, if its value has no effects. */
const DECLARATION = /(?<=[\w)}\]"/]),([\w$]+)=(?=[\w$]+\(|\{|"|\/|[\w$]+=>)/g;
/** The start of the next list of declarations, or of the next function. */
const NEXT = /;(?:var |function )/g;

/** Rules that the lexer does not use. */
const UNUSED_RULES = new RegExp(
  ",(?:outputLinkReplace|listReplaceNesting|pedantic\\w+|escape(?:Test|Replace)(?:NoEncode)?|percentDecode" +
    "|spaceLine|notSpaceStart|endingNewline):.*?(?=,[a-zA-Z]+:)",
  "g",
);

/** Returns how often code refers to a variable. */
function usesOf(code: string, name: string): number {
  const word = name.replaceAll("$", "\\$");
  return code.match(new RegExp(`(?<![\\w$&\\\\]|(?<!\\.\\.)\\.)${word}(?![\\w$:])`, "g"))?.length ?? 0;
}

/** Removes declarations to which nothing refers: the bundler can't know that their calls have no effects. */
function withoutUnused(code: string): string {
  const all = [...code.matchAll(DECLARATION)];
  const unused = all.findIndex(([, name = ""]) => usesOf(code, name) === 1);
  const start = all[unused]?.index;
  if (start === undefined) return code;
  NEXT.lastIndex = start;
  const end = Math.min(all[unused + 1]?.index ?? code.length, NEXT.exec(code)?.index ?? code.length);
  return withoutUnused(code.slice(0, start) + code.slice(end));
}

/** Keeps only GitHub's dialect. Its rules replace some of the normal ones. */
function onlyGithub(code: string): string {
  let kept = code;
  for (const [all, normal = "", github = ""] of code.matchAll(DIALECTS)) {
    const [, own = ""] = kept.split(`,${github}={...${normal}`);
    const rules = own.split("={...")[0] ?? "";
    const base = new RegExp(`(?<=,${normal}=\\{)[\\w$:,]+(?=\\})`);
    kept = kept
      .replace(base, (entries) =>
        entries
          .split(",")
          .filter((entry) => !rules.includes(`,${entry.split(":")[0]}:`))
          .join(","),
      )
      .replace(all, () => `{normal:${github},gfm:${github}}`);
  }
  if (kept === code) throw new Error("This version of marked has other dialects.");
  return withoutUnused(kept);
}

/**
 * Removes everything but the lexer from marked. The library sets properties of its function `marked` when it
 * is loaded, so the bundler would also keep its parser, renderers and extensions. Also removes the code for
 * extensions and for other dialects than GitHub's, because the page does not read them.
 */
const markedLexer: Plugin = {
  name: "marked-lexer",
  transform: {
    filter: { id: /\/marked\.esm\.js$/ },
    handler(code) {
      const [, lexer] = /(\w+) as Lexer\b/.exec(code) ?? [];
      const end = code.search(/var \w+=new \w+;function \w+\(\w+,\w+\)\{return \w+\.parse\(/);
      if (lexer === undefined || end < 0) throw new Error("This version of marked has another form.");
      const kept = code
        .slice(0, end)
        .replaceAll("this.options.pedantic", "!1")
        .replaceAll("this.options.gfm", "!0")
        .replaceAll(/this\.options\.(extensions|hooks|silent|breaks)\b/g, "(void 0)")
        .replaceAll(UNUSED_RULES, "");
      return { code: `${onlyGithub(kept)}export{${lexer} as Lexer};`, map: null };
    },
  },
};

/** Removes the highlighter's guess whether code is TypeScript: only code of a named language is coloured. */
const noGuess: Plugin = {
  name: "no-guess",
  transform: {
    filter: { id: /\/sugar-high\/lib\/presets\/javascript-runtime\.js$/ },
    handler(code) {
      const less = code.replace(
        /(?<=function isLikelyTypeScript\(code\) \{)[\s\S]*?(?=\n\}\n)/,
        " return false",
      );
      if (less === code) throw new Error("This version of sugar-high has another form.");
      return { code: less, map: null };
    },
  },
};

/** Parts that are small, or rarely needed. */
const EXTRAS = [
  "demo",
  "setup",
  "palette",
  "operations/editor",
  "features/replay",
  "features/push/button",
  "inbox/peek",
];

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "/",
  clearScreen: false,
  logLevel: "warn",
  plugins: [earlyScripts, ownPreload, serviceWorkers, typefaceLicense, markedLexer, noGuess],
  // The classic form of elements compresses better.
  oxc: {
    jsx: { runtime: "classic", pragma: "h", pragmaFrag: "Fragment" },
    jsxInject: `import { Fragment, h } from "preact";`,
  },
  build: {
    target: TARGET,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      treeshake: { propertyReadSideEffects: false, unknownGlobalSideEffects: false },
      output: {
        codeSplitting: {
          groups: [
            { name: "index", tags: ["$initial"], priority: 2 },
            { name: "shared", minShareCount: 2, priority: 1 },
            { name: "tabs", test: /ui\/src\/features\/[^/]+\/(?:tab|section)/ },
            {
              name: "extras",
              test: new RegExp(`ui/src/(?:${EXTRAS.join("|")}|conversation/text/highlight)|sugar-high/`),
            },
          ],
        },
      },
    },
    license: { fileName: "licenses.md" },
  },
});
