// Configures the build of the page: `npm run build:page`. The gateway serves dist/ui.
// - Nothing is inlined, because the page's content security policy allows scripts and styles only from files.
// - The licences of the bundled libraries are included.
// - The first view needs one script. Views that are loaded later have one more each.

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
