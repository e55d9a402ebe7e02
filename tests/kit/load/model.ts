// A model server for load tests, in a separate process. It calls a tool, then streams an answer in small
// pieces over some seconds. It prints its address, and exits when its standard input closes.

import { startModelServer } from "../model-server/server.ts";
import { call, pause, type Step, text } from "../model-server/steps.ts";

const [pieces = 24, intervalMs = 250] = process.argv.slice(2).map(Number);

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const server = await startModelServer((request) => {
  // Drops the recorded requests, because this server may run for hours.
  server.requests.length = 0;
  if (request.toolResults.length === 0) return [text("I look. ", 1), call("session_status", {})];
  const key = /^run (\S+)/.exec(request.lastUserText)?.[1] ?? "nobody";
  const steps: Step[] = [text(`answer to ${key}:`, 1)];
  for (let at = 1; at <= pieces; at += 1) {
    steps.push(pause(sleep(at * intervalMs)), text(` piece ${at} of ${pieces},`, 1));
  }
  return steps;
});
console.log(server.url);
process.stdin.on("close", () => process.exit(0)).resume();
