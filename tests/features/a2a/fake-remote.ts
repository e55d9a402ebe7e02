// A scripted A2A server, and the answers that it gives.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { cleanup } from "../../kit/engine/engine.ts";

export type Json = Record<string, unknown>;
export type Reply = (params: Json, response: ServerResponse, id: unknown) => void;

export interface FakeRemote {
  readonly url: string;
  /** The methods that were called, with their params. */
  readonly calls: { method: string; params: Json }[];
  card: Json;
  /** Returns how often the card was read. */
  reads(): number;
  /** Answers to the methods. */
  readonly on: Record<string, Reply>;
}

async function bodyOf(request: IncomingMessage): Promise<Json> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return JSON.parse(Buffer.concat(pieces).toString()) as Json;
}

export async function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export async function fakeRemote(): Promise<FakeRemote> {
  const on: FakeRemote["on"] = {};
  const calls: FakeRemote["calls"] = [];
  let reads = 0;
  const url = await listen(async (request, response) => {
    if (request.method === "GET") {
      reads += 1;
      response.setHeader("content-type", "application/json");
      return void response.end(JSON.stringify(remote.card));
    }
    const { method, params, id } = await bodyOf(request);
    calls.push({ method: String(method), params: params as Json });
    const reply = on[String(method)];
    if (reply === undefined) return void response.writeHead(500).end();
    reply(params as Json, response, id);
  });
  const place = { url: `${url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" };
  const card = {
    ...{ name: "far", description: "far away", version: "1", skills: [], supportedInterfaces: [place] },
    ...{ capabilities: { streaming: true }, defaultInputModes: ["text"], defaultOutputModes: ["text"] },
  };
  const remote: FakeRemote = { url, calls, on, card, reads: () => reads };
  return remote;
}
