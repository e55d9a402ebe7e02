// A process with many clients of a gateway that count their events: `crowd.ts URL TOKEN CLIENTS`. The parent
// process sends the number of messages that each client should receive; this process reports when all clients
// have received them.

import { WebSocket } from "ws";

/** A request of the parent process. */
export interface Expected {
  readonly notes: number;
}

const JOIN_AT_ONCE = 50;
const [url = "", token = "", clients = "1"] = process.argv.slice(2);

let left = 0;

function connectRequest(): string {
  const client = { id: "crowd", version: "1", platform: "bench", mode: "backend" };
  const params = { minProtocol: 3, maxProtocol: 3, client, auth: { token } };
  return JSON.stringify({ type: "req", id: "connect", method: "connect", params });
}

function join(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url);
    socket.once("error", reject);
    socket.once("close", (code) => reject(new Error(`closed with ${code}`)));
    socket.on("message", (data) => {
      const text = data.toString();
      if (text.includes('"connect.challenge"')) socket.send(connectRequest());
      else if (text.startsWith('{"type":"res"')) resolve();
      else if (text.startsWith('{"type":"event","event":"chat"')) {
        left -= 1;
        if (left === 0) process.send?.("all");
      }
    });
  });
}

process.on("message", ({ notes }: Expected) => {
  left = notes * Number(clients);
  process.send?.("waiting");
});
process.on("disconnect", () => process.exit(0));
for (let at = 0; at < Number(clients); at += JOIN_AT_ONCE) {
  const size = Math.min(JOIN_AT_ONCE, Number(clients) - at);
  await Promise.all(Array.from({ length: size }, join));
}
process.send?.("joined");
