// Configures the build of the page: `npm run build:page`. The gateway serves dist/ui.
// - Nothing is inlined, because the page's content security policy allows scripts and styles only from files.
// - The licences of the bundled libraries and of the typeface are included.
// - The first view needs one script. Views that are loaded later have one more each, and share one for what
//   several of them use.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

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
  plugins: [typefaceLicense],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
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
