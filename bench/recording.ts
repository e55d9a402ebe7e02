// Records the terminal: `npm run recording`. Runs `npm run demo` in a real pseudo-terminal and writes what it
// prints to site/public/demo.cast (asciicast v2), with pauses in which a person can read it. Then chats with
// a real gateway on the offline model and takes the picture of the terminal that docs/TOUR.md shows.

import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { closeBrowser, visit } from "../tests/kit/browser.ts";
import { cleanUp, temporaryFolder } from "../tests/kit/engine/engine.ts";
import { STORY_CONFIG } from "../tests/kit/page-views.ts";
import { LAUNCHER } from "../tests/kit/process/fleet.ts";
import { startProcess } from "../tests/kit/process/gateway-process.ts";
import { Pty } from "../tests/kit/pty.ts";
import { typed } from "../tests/kit/typed.ts";
import { until } from "../tests/kit/until.ts";
import { smallPng } from "./small-png.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CAST = `${ROOT}site/public/demo.cast`;
const PICTURE = `${ROOT}docs/screenshots/terminal-chat.png`;
const SIZE = { columns: 100, rows: 30 };
/** Length of the recording. The demo takes about 20 seconds, in which nobody can read its texts. */
const RECORDED_S = 90;

type Event = [seconds: number, kind: "o", text: string];

/** Adds a pause after each text, as long as its part of all texts, so that the recording has its length. */
function slowDown(events: readonly Event[]): Event[] {
  const chars = events.reduce((sum, [, , text]) => sum + text.length, 0);
  const pauses = RECORDED_S - (events.at(-1)?.[0] ?? 0);
  let before = 0;
  return events.map(([seconds, kind, text]) => {
    const at = seconds + (pauses * before) / chars;
    before += text.length;
    return [Math.round(at * 1000) / 1000, kind, text];
  });
}

/** Records a command. Times are seconds since its start. */
async function record(command: string): Promise<string> {
  const start = performance.now();
  const decoder = new TextDecoder();
  const events: Event[] = [[0, "o", `$ ${command}\r\n`]];
  const listen = (bytes: Buffer): void => {
    const seconds = Math.round(performance.now() - start) / 1000;
    events.push([seconds, "o", decoder.decode(bytes, { stream: true })]);
  };
  const home = temporaryFolder(tmpdir());
  const env = { HOME: home, npm_config_update_notifier: "false", npm_config_prefix: home };
  const inRoot = ["sh", "-c", `cd "$0" && ${command}`, ROOT];
  const pty = new Pty(inRoot, { folder: home, env, ...SIZE, listen });
  const code = await pty.exited;
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${pty.text()}`);
  const head = { version: 2, width: SIZE.columns, height: SIZE.rows, title: command };
  return `${[head, ...slowDown(events)].map((line) => JSON.stringify(line)).join("\n")}\n`;
}

async function takeChat(): Promise<Buffer> {
  const gateway = await startProcess({ config: STORY_CONFIG });
  const env = { HOME: gateway.home, PARLEY_LOG: "silent", PARLEY_LAUNCHED: "1" };
  const pty = new Pty([process.execPath, LAUNCHER, "chat"], { folder: gateway.home, env, ...SIZE });
  const shows = (text: string): Promise<boolean> => until(() => pty.screen().includes(text));
  await shows("/help lists the commands");
  pty.type("list sessions\r");
  await shows("(main, running)");
  pty.type("ask research: what should we check before a release?\r");
  await shows("conversation with agent:research:main ended");
  const { context } = await visit(gateway.httpUrl, { token: gateway.token });
  const page = await context.newPage();
  const style = "<style>pre > div { width: max-content; padding: 16px; border-radius: 8px }</style>";
  await page.setContent(pty.html() + style);
  return smallPng(await page.locator("pre > div").screenshot());
}

typed("npm run recording", {});
try {
  writeFileSync(CAST, await record("npm run demo"));
  writeFileSync(PICTURE, await takeChat());
} finally {
  await cleanUp();
  await closeBrowser();
}
