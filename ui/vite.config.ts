// Configures the build of the page: `npm run build:page`. The gateway serves dist/ui.
// - Only one small script is inlined (src/early.ts). For all others the page's content security policy allows
//   only files.
// - The licences of the bundled libraries and of the typeface are included.
// - The first view needs one script. Views that are loaded later have one more each, and share one for what
//   several of them use. Small parts that are loaded later share one, too, because it compresses better.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build, defineConfig, type Plugin } from "vite";

const TARGET = "es2022";

/** Inlines src/early.ts before everything else, and its hash, which the gateway puts into the policy. */
const earlyScript: Plugin = {
  name: "early-script",
  transformIndexHtml: {
    order: "post",
    async handler() {
      const input = fileURLToPath(new URL("src/early.ts", import.meta.url));
      const built = await build({
        configFile: false,
        logLevel: "warn",
        build: { write: false, target: TARGET, rolldownOptions: { input, output: { format: "iife" } } },
      });
      if (!("output" in built)) throw new Error("Vite has not built src/early.ts.");
      const children = built.output[0].code.trim();
      const hash = createHash("sha256").update(children).digest("base64");
      return [
        { tag: "script", attrs: { "data-hash": `sha256-${hash}` }, children, injectTo: "head-prepend" },
      ];
    },
  },
};

const typefaceLicense: Plugin = {
  name: "typeface-license",
  generateBundle() {
    const file = fileURLToPath(import.meta.resolve("@fontsource-variable/inter/LICENSE"));
    this.emitFile({ type: "asset", fileName: "inter-license.txt", source: readFileSync(file) });
  },
};

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
      let kept = code
        .slice(0, end)
        .replaceAll("this.options.pedantic", "!1")
        .replaceAll("this.options.gfm", "!0")
        .replaceAll(/this\.options\.(extensions|hooks|silent|breaks)\b/g, "(void 0)");
      for (const [entry, name] of kept.matchAll(/,pedantic:(\w+)/g))
        kept = kept.replace(entry, "").replace(new RegExp(`,${name}=\\{[^]*?\\.getRegex\\(\\)\\}(?=,)`), "");
      return { code: `${kept}export{${lexer} as Lexer};`, map: null };
    },
  },
};

/** The languages that are coloured; C also stands for C++. */
const LANGUAGES = [
  ...["javascript", "typescript", "python", "c", "go", "rust", "shell"],
  ...["json", "yaml", "html", "diff", "plaintext"],
];

/** Removes rare languages from the highlighter, so that its script is smaller. */
const fewerLanguages: Plugin = {
  name: "fewer-languages",
  transform: {
    filter: { id: /\/sugar-high\/lib\/lang\.js$/ },
    handler(code) {
      const isRare = (line: string): boolean => {
        const [, id] = /^ *\{ id: '(\w+)'/.exec(line) ?? [];
        return id !== undefined && !LANGUAGES.includes(id);
      };
      const less = code
        .split("\n")
        .filter((line) => !isRare(line))
        .join("\n")
        .replace(
          "id: 'c', extension: 'c', aliases: []",
          "id: 'c', extension: 'c', aliases: ['cpp', 'c++', 'cc']",
        );
      if (less === code) throw new Error("This version of sugar-high has another form.");
      return { code: less, map: null };
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
const EXTRAS = ["demo", "setup", "palette", "operations/editor", "flow/replay", "inbox/peek"];

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "/",
  clearScreen: false,
  logLevel: "warn",
  plugins: [earlyScript, typefaceLicense, markedLexer, fewerLanguages, noGuess],
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
