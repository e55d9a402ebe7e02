// Lets a real Codex send a question to a real Claude Code that is idle at its prompt, over a gateway of this
// checkout. A scripted server replaces their models: `npm run woken -- FOLDER`. FOLDER has the packages
// @anthropic-ai/claude-code and @openai/codex (`npm install --prefix FOLDER …`). Needs `script` of util-linux
// as Claude Code's terminal. Exit code 1: the answer is missing.

import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../tests/kit/loopback.ts";
import type { ServedRequest } from "../tests/kit/model-server/requests.ts";
import { type Answer, startModelServer } from "../tests/kit/model-server/server.ts";
import { call } from "../tests/kit/model-server/steps.ts";
import { addressOf, LAUNCHER, launch, TOKEN, writeHome } from "../tests/kit/process/fleet.ts";

const run = promisify(execFile);
const LOOKS_MAX = 60;
const QUESTION = "which port do you use?";

const [programs] = process.argv.slice(2);
if (programs === undefined) {
  process.stderr.write("Skipped: name the folder that has Claude Code and Codex.\n");
  process.exit(2);
}
const program = (name: string): string => resolve(programs, "node_modules", ".bin", name);
const ground = mkdtempSync(join(tmpdir(), "parley-woken-"));
const [home, folder] = [join(ground, "home"), join(ground, "shop")];
const codexHome = join(home, ".codex");
for (const made of [home, folder, codexHome]) mkdirSync(made);
const base = { PATH: process.env.PATH ?? "", HOME: home, TERM: "xterm-256color" };
const parley = async (...args: string[]): Promise<string> =>
  (await run(process.execPath, [LAUNCHER, ...args], { cwd: folder, env: base })).stdout;

/** Plays the model of Codex: waits until Codex has connected its MCP server, then sends the question once. */
function asCodex({ body, messages, toolResults }: ServedRequest): Answer {
  const called = messages.flatMap(({ calls }) => calls.map(({ name }) => name));
  if (called.includes("sessions_send")) return `It answered: ${toolResults.at(-1)}`;
  const isConnected = JSON.stringify(body.tools).includes('"mcp__parley"');
  if (!isConnected && called.length < LOOKS_MAX) return [call("exec_command", { cmd: "sleep 1" })];
  const question = { sessionKey: "agent:main:mcp:writer", message: QUESTION, timeoutSeconds: 60 };
  return [call("mcp__parley/sessions_send", question)];
}

/** Plays the model of Claude Code: answers the session that asked. */
function asClaude({ messages }: ServedRequest): Answer {
  const asker = /from session (\S+), not from/.exec(messages.flatMap(({ texts }) => texts).join("\n"))?.[1];
  if (asker === undefined || messages.some(({ role }) => role === "tool")) return "Done.";
  const answer = { sessionKey: asker, message: "port 8080", timeoutSeconds: 0 };
  return [call("mcp__parley__sessions_send", answer)];
}

writeHome(home, {
  gateway: { port: await freePort(), auth: { token: TOKEN } },
  tools: { sessions: { visibility: "agent" } },
});
const model = await startModelServer((request) =>
  request.api === "openai-responses" ? asCodex(request) : asClaude(request),
);
writeFileSync(
  join(codexHome, "config.toml"),
  `model = "test-model"
model_provider = "test"
[model_providers.test]
name = "test"
base_url = "${model.url}/responses-api/v1"
wire_api = "responses"
env_key = "TEST_KEY"
[projects."${folder}"]
trust_level = "trusted"
`,
);
const trusted = { [folder]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } };
writeFileSync(
  join(home, ".claude.json"),
  JSON.stringify({ hasCompletedOnboarding: true, theme: "dark", projects: trusted }),
);

const gateway = launch(home, ["gateway"]);
await addressOf(gateway);
await parley("join", "claude-code", "--session", "writer", "--yes");
await parley("join", "codex", "--session", "reviewer", "--yes");
const window = spawn("script", ["-qfec", `stty cols 120 rows 40; exec ${program("claude")}`, "/dev/null"], {
  cwd: folder,
  env: {
    ...base,
    ANTHROPIC_BASE_URL: `${model.url}/anthropic`,
    ANTHROPIC_AUTH_TOKEN: "test",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  },
  stdio: ["pipe", "ignore", "ignore"],
  detached: true,
});
let answer = "";
try {
  for (let look = 0; look < LOOKS_MAX && !(await parley("sessions")).includes("mcp:writer"); look += 1)
    await run("sleep", ["1"]);
  process.stdout.write(`${await parley("sessions")}\n`);
  const flags = "--skip-git-repo-check --dangerously-bypass-hook-trust";
  const words = `exec ${program("codex")} exec ${flags} "$0" </dev/null`;
  const env = { ...base, CODEX_HOME: codexHome, TEST_KEY: "test" };
  const asked = run("timeout", ["120", "sh", "-c", words, "Ask the writer for its port."], {
    cwd: folder,
    env,
  });
  answer = (await asked).stdout;
  process.stdout.write(`${answer}\n${await parley("sessions", "history", "agent:main:mcp:writer")}`);
} finally {
  if (window.pid !== undefined) process.kill(-window.pid);
  gateway.kill();
  await model.close();
}
process.exit(answer.includes("port 8080") ? 0 : 1);
