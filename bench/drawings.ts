// Draws what Telegram and Grafana show of a gateway: `npm run drawings`. Both programs need servers that no
// machine of a test has. The messages and figures are real; the looks are imitated (draw-telegram.ts,
// draw-board.ts). Takes four minutes.

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { closeBrowser, visit } from "../tests/kit/browser.ts";
import { cleanUp } from "../tests/kit/engine/engine.ts";
import { startProcess } from "../tests/kit/process/gateway-process.ts";
import { typed } from "../tests/kit/typed.ts";
import { drawBoard } from "./draw-board.ts";
import { drawTelegram } from "./draw-telegram.ts";
import { smallPng } from "./small-png.ts";

const FOLDER = fileURLToPath(new URL("../docs/screenshots/", import.meta.url));

typed("npm run drawings", {});
try {
  const gateway = await startProcess();
  const { context } = await visit(gateway.httpUrl, { token: gateway.token });
  const page = await context.newPage();
  writeFileSync(`${FOLDER}telegram.png`, smallPng(await drawTelegram(page)));
  writeFileSync(`${FOLDER}grafana.png`, smallPng(await drawBoard(page)));
} finally {
  await cleanUp();
  await closeBrowser();
}
