// A client of a gateway that counts the bytes of its events without parsing them.

import { WebSocket } from "ws";
import { TOKEN } from "../tests/kit/process/fleet.ts";

/** Connects a client with these capabilities. */
export async function watcher(url: string, caps: readonly string[]) {
  const socket = new WebSocket(url);
  const joined = Promise.withResolvers<void>();
  const counted = { bytes: 0 };
  socket.once("error", joined.reject);
  socket.on("message", (data: Buffer) => {
    counted.bytes += data.length;
    const text = data.subarray(0, 100).toString();
    if (text.includes("connect.challenge")) {
      const client = { id: "watcher", version: "1", platform: "bench", mode: "backend" };
      const params = { minProtocol: 3, maxProtocol: 3, client, caps, auth: { token: TOKEN } };
      socket.send(JSON.stringify({ type: "req", id: "connect", method: "connect", params }));
    } else if (text.startsWith('{"type":"res"')) {
      counted.bytes = 0;
      joined.resolve();
    }
  });
  await joined.promise;
  return { counted, leave: () => socket.terminate(), stopReading: () => socket.pause() };
}
