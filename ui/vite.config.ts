// Configures the build of the page: `npm run build:page`. The gateway serves dist/ui.
// - Nothing is inlined: the page's policy runs scripts and styles from files only.
// - The licences of the bundled libraries are included.
// - The first load is one file; each view that is loaded later is one more.

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
