// An MCP server of revision 2026-07-28, made with the SDK, whose tools ask the person at the client. Started
// as a program it speaks over standard input and output; `openAskingWeb` serves it over HTTP.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { createMcpHandler, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { cleanup } from "../../kit/cleanup.ts";

export const ASKING = fileURLToPath(import.meta.url);

const words = (value: unknown) => ({ content: [{ type: "text" as const, text: JSON.stringify(value) }] });

const COLOR = {
  type: "object",
  properties: {
    color: { type: "string", title: "Colour", enum: ["red", "green"] },
    amount: { type: "integer", minimum: 1, default: 2 },
  },
  required: ["color"],
} as const;

const QUESTIONS: Record<string, Record<string, object>> = {
  form: { a: { message: "Which colour?\u202e", requestedSchema: COLOR } },
  visit: {
    a: {
      mode: "url",
      message: "Pay here",
      url: "https://pay.example.com/?order=7",
      elicitationId: "e1",
    },
  },
  confirm: { a: { message: "Really?", requestedSchema: { type: "object", properties: {} } } },
  nested: {
    a: {
      message: "All of it",
      requestedSchema: { type: "object", properties: { deep: { type: "object" } } },
    },
  },
};

function build(): McpServer {
  const server = new McpServer({ name: "asking", version: "1" });
  for (const [name, questions] of Object.entries(QUESTIONS))
    server.registerTool(name, {}, (ctx) => {
      const { mcpReq } = ctx;
      if (mcpReq.inputResponses !== undefined) return words([mcpReq.requestState(), mcpReq.inputResponses]);
      const asked = Object.entries(questions).map(([key, params]) => [
        key,
        { method: "elicitation/create", params },
      ]);
      return inputRequired({ inputRequests: Object.fromEntries(asked), requestState: "state 1" });
    });
  server.registerTool("sample", {}, ({ mcpReq }) => {
    if (mcpReq.inputResponses !== undefined) return words(mcpReq.inputResponses);
    const messages = [{ role: "user" as const, content: { type: "text" as const, text: "A rhyme?" } }];
    const params = { messages, systemPrompt: "Be short.", maxTokens: 50 };
    return inputRequired({ inputRequests: { s: { method: "sampling/createMessage", params } } });
  });
  return server;
}

/** Serves it over HTTP and returns its address. */
export async function openAskingWeb(): Promise<string> {
  const handler = createMcpHandler(build);
  const server = createServer(async (from, to) => {
    const pieces: Buffer[] = [];
    for await (const piece of from) pieces.push(piece as Buffer);
    const headers = Object.entries(from.headers).map(
      ([name, value]) => [name, String(value)] as [string, string],
    );
    const body = pieces.length === 0 ? undefined : Buffer.concat(pieces);
    const request = new Request(`http://${from.headers.host}${from.url}`, {
      method: from.method,
      headers,
      body,
    } as RequestInit);
    const response = await handler.fetch(request);
    to.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body === null) to.end();
    else Readable.fromWeb(response.body as never).pipe(to);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

if (process.argv[1] === ASKING) serveStdio(build);
