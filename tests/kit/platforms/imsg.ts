// A program that replaces `imsg rpc`. It connects its pipes to the test's fake of Messages (imsg-desk.ts),
// and ends when the fake closes the connection or the input ends.

import { connect } from "node:net";
import { fileURLToPath } from "node:url";

/** Path of this program. Its argument is the fake's port. */
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
