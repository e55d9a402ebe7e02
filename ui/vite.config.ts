// How the page is built: `npm run build:page`. The gateway serves what lands in dist/ui.
// V1: nothing is inlined: the page's policy runs scripts and styles from files only.
// V2: the licences of the libraries that it is made of go with it.
// V3: what the page begins with is one file; each view that is loaded later is one more.

import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "/",
  clearScreen: false,
  logLevel: "warn",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: { codeSplitting: { groups: [{ name: "index", tags: ["$initial"] }] } },
    },
    license: { fileName: "licenses.md" },
  },
});
