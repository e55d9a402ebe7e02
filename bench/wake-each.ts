// Sends a question to each real coding agent that has joined a gateway of this checkout (wake-window.ts):
// `npm run woken:each -- FOLDER [NAME]`. FOLDER has the packages of the agents
// (`npm install --prefix FOLDER …`); a missing one is skipped. Prints the answers and receipts. Exit code 1:
// an answer is missing, or a configuration is not accepted.

import { existsSync } from "node:fs";
import { closeBrowser } from "../tests/kit/browser.ts";
import { cleanUp } from "../tests/kit/engine/engine.ts";
import { packageOf, tryWindow } from "./wake-window.ts";
import { WINDOWS } from "./windows.ts";

const [programs, ...names] = process.argv.slice(2);
if (programs === undefined) {
  process.stderr.write("Skipped: name the folder that has the coding agents.\n");
  process.exit(2);
}
let holds = true;
for (const one of WINDOWS) {
  if (names.length > 0 && !names.includes(one.id)) continue;
  if (existsSync(packageOf(one, programs))) holds = (await tryWindow(one, { programs })).holds && holds;
  else process.stdout.write(`\n## ${one.name}: ${one.packageName} is not installed\n`);
}
await cleanUp();
await closeBrowser();
process.exit(holds ? 0 : 1);
