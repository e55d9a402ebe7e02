// Starts an ACP program, and writes each line that it reads (`client`) and writes (`agent`) into a file:
//
//   node tests/features/acp/tap.ts FILE PROGRAM [ARGUMENT …]

import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [file = "", program = "", ...args] = process.argv.slice(2);
const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
const pass = (by: string, from: NodeJS.ReadableStream, to: NodeJS.WritableStream): void => {
  createInterface({ input: from }).on("line", (line) => {
    appendFileSync(file, `${JSON.stringify({ by, line })}\n`);
    to.write(`${line}\n`);
  });
};
pass("client", process.stdin, child.stdin);
pass("agent", child.stdout, process.stdout);
process.stdin.on("end", () => child.stdin.end());
child.on("exit", (code) => process.exit(code ?? 1));
