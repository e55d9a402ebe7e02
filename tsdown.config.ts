// How the package is built (`npm run build`, before `npm pack`). A checkout runs src as it is and needs none
// of it.
// B1: dist has the shape of src, file by file: what is loaded late, and what finds other files beside it
//     (file-worker, sqlite-aside-worker, package.json, the folder that a sandbox sees), works as in a checkout.
// B2: the browser's client is one file and reaches nothing of Node: the build fails on an import that is left.

import { defineConfig } from "tsdown";

const COMMON = {
  format: "esm",
  fixedExtension: false,
  sourcemap: false,
  report: false,
} as const;

export default defineConfig([
  {
    ...COMMON,
    name: "program",
    entry: ["src/main.ts", "src/tools/file-worker.ts", "src/store/sqlite-aside-worker.ts"],
    platform: "node",
    target: "node24",
    unbundle: true,
    dts: false,
    clean: true,
  },
  {
    ...COMMON,
    name: "client",
    entry: { "client/node": "src/gateway/client.ts" },
    platform: "node",
    target: "es2022",
    dts: true,
    clean: false,
  },
  {
    ...COMMON,
    name: "browser",
    entry: { "client/web": "src/gateway/client/web.ts" },
    platform: "browser",
    target: "es2022",
    dts: false,
    clean: false,
  },
]);
