// Installs the plugins of `clients` into the real programs by their own commands, and sends messages to
// their windows as wake-window.ts does: `npm run plugins`. Installs the programs from npm (a gigabyte, some
// minutes) into a temporary folder, or into `--dir FOLDER`, which is reused the next time. Only loopback and
// npm are needed. Prints a table. Exit code 1: a plugin does not work.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { closeBrowser } from "../tests/kit/browser.ts";
import { cleanUp } from "../tests/kit/engine/engine.ts";
import { typed } from "../tests/kit/typed.ts";
import { install } from "./coding-agents.ts";
import { CHECKOUT, type Plugin, tryWindow } from "./wake-window.ts";
import { WINDOWS } from "./windows.ts";

const SHOWN_CHARS = 300;

/** The version that is tried of each package. */
const VERSIONS: Readonly<Record<string, string>> = {
  "@anthropic-ai/claude-code": "2.1.332",
  "@openai/codex": "0.171.0",
  "@google/gemini-cli": "0.61.0",
  "@qwen-code/qwen-code": "0.24.4",
};

const PLUGINS: Readonly<Record<string, Plugin & { readonly shown: string }>> = {
  "claude-code": {
    install: [
      ["plugin", "validate", "--strict", join(CHECKOUT, "clients/claude-code")],
      ["plugin", "marketplace", "add", CHECKOUT],
      ["plugin", "install", "parley@parley"],
    ],
    list: ["plugin", "list"],
    allow: ["--allowedTools=mcp__plugin_parley_parley"],
    shown: "`claude plugin install parley@parley`",
  },
  codex: {
    install: [
      ["plugin", "marketplace", "add", CHECKOUT],
      ["plugin", "add", "parley@parley"],
    ],
    list: ["plugin", "list"],
    allow: ["-c", 'plugins."parley@parley".mcp_servers.parley.default_tools_approval_mode="approve"'],
    shown: "`codex plugin add parley@parley`",
  },
  gemini: {
    install: [
      ["extensions", "validate", join(CHECKOUT, "clients/gemini")],
      ["extensions", "install", "--consent", join(CHECKOUT, "clients/gemini")],
    ],
    list: ["extensions", "list"],
    allow: ["--approval-mode=yolo"],
    shown: "`gemini extensions install …`",
  },
  qwen: {
    install: [["extensions", "install", "--consent", join(CHECKOUT, "clients/qwen")]],
    list: ["extensions", "list"],
    allow: ["--approval-mode=yolo"],
    shown: "`qwen extensions install …`",
  },
};

const known = WINDOWS.filter(({ id }) => PLUGINS[id] !== undefined);
const USAGE = `npm run plugins -- [options]
  --dir DIR    install into DIR, and reuse it the next time
  --only NAME  try only this program: ${known.map(({ id }) => id).join(", ")}`;
const values = typed(USAGE, {
  dir: { type: "string" },
  only: { type: "string" },
});
const programs = resolve(values.dir ?? mkdtempSync(join(tmpdir(), "parley-plugins-")));
const table = [
  "| program | installed by | woken idle, or in a turn, and after it was closed |",
  "|---|---|---|",
];
let fine = true;
try {
  await install(programs, { dependencies: VERSIONS });
  for (const one of known.filter(({ id }) => values.only === undefined || values.only === id)) {
    const plugin = PLUGINS[one.id];
    if (plugin === undefined) continue;
    const { holds, version, why = "" } = await tryWindow(one, { programs, plugin });
    fine &&= holds;
    const result = holds ? "yes" : `no: ${why.replaceAll(/\s+/g, " ").slice(0, SHOWN_CHARS)}`;
    table.push(`| ${one.name}, \`${one.packageName}\` ${version} | ${plugin.shown} | ${result} |`);
  }
} finally {
  await cleanUp();
  await closeBrowser();
  if (values.dir === undefined) rmSync(programs, { recursive: true, force: true });
}
console.log(table.join("\n"));
process.exit(fine ? 0 : 1);
