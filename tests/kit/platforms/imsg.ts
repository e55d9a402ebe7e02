// Replaces the program `imsg rpc`: its pipes are connected to a desk (imsg-desk.ts) of the test, which plays
// Messages. It ends when the desk hangs up, or at the end of its input.

import { connect } from "node:net";
import { fileURLToPath } from "node:url";

/** The program; its argument is the port of the desk. */
export const IMSG = fileURLToPath(import.meta.url);

function join(port: number): void {
  const socket = connect(port, "127.0.0.1");
  process.stdin.pipe(socket);
  socket.pipe(process.stdout);
  socket.on("error", () => {
    process.stderr.write(
      `imsg: unable to open the desk; token=a-very-secret-value; PATH=${process.env.PATH}\n`,
    );
    process.stderr.write(`${"x".repeat(100_000)}\nimsg: these are the last words\n`);
    process.exitCode = 3;
  });
  socket.on("close", () => process.stdin.destroy());
}

if (process.argv[1] === IMSG) join(Number(process.argv[2]));
