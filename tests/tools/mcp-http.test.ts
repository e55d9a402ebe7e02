// HTTP servers (Streamable HTTP) that violate MCP, on real sockets.

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { cleanup, quietWorld } from "../kit/engine/engine.ts";
import { fakeWorld } from "../kit/world.ts";
import { httpServer, mcpWith, openOutside } from "./mcp-kit.ts";

interface Asked {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly name?: string; readonly requestId?: number };
  readonly response: ServerResponse;
  readonly request: IncomingMessage;
}

interface Web {
  readonly url: string;
  readonly asked: Asked[];
  readonly server: Server;
  /** Resolves with the first matching request. */
  saw(fits: (asked: Asked) => boolean): Promise<Asked>;
}

const json = (asked: Asked, body: unknown, headers = {}): void => {
  asked.response.writeHead(200, { "content-type": "application/json", ...headers });
  asked.response.end(JSON.stringify({ jsonrpc: "2.0", id: asked.id, ...(body as object) }));
};

const TOOL = { inputSchema: { type: "object" } };

/**
 * Starts a server that answers the handshake and a list of two tools. `take` answers other requests, or
 * returns false.
 */
async function openWeb(take: (asked: Asked) => boolean): Promise<Web> {
  const asked: Asked[] = [];
  const watchers: (() => void)[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += String(chunk);
    const message = text === "" ? { method: request.method ?? "" } : (JSON.parse(text) as { method: string });
    const one: Asked = { ...message, request, response };
    asked.push(one);
    for (const watcher of watchers.splice(0)) watcher();
    if (take(one)) return;
    const capabilities = { tools: {} };
    const serverInfo = { name: "web", version: "1" };
    if (one.method === "initialize")
      return json(one, { result: { protocolVersion: "2025-06-18", capabilities, serverInfo } });
    if (one.method === "tools/list")
      return json(one, {
        result: {
          tools: [
            { name: "go", ...TOOL },
            { name: "see", ...TOOL, annotations: { readOnlyHint: true } },
          ],
        },
      });
    response.writeHead(one.id === undefined ? (request.method === "POST" ? 202 : 405) : 400).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    asked,
    server,
    async saw(fits) {
      for (;;) {
        const found = asked.find(fits);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => watchers.push(resolve));
      }
    },
  };
}

const isCall = ({ method }: Asked): boolean => method === "tools/call";
const callsOf = (web: Web): number => web.asked.filter(isCall).length;

/** Starts a server. `end` decides how each call ends. */
const callEnds = (end: (asked: Asked, time: number) => void): Promise<Web> => {
  let times = 0;
  return openWeb((asked) => {
    if (!isCall(asked)) return false;
    times += 1;
    end(asked, times);
    return true;
  });
};

test("if a stream breaks during a call, the outcome is unknown immediately, without waiting for a timeout", async () => {
  const web = await callEnds(({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": hello\n\n");
    response.destroy();
  });
  const outside = openOutside(mcpWith([httpServer("web", web.url)]), quietWorld());
  expect(await outside.call("mcp__web__go")).toMatchObject({ status: "error", code: "outcome_unknown" });
  expect(callsOf(web)).toBe(1);
  expect(await outside.call("mcp__web__see")).toMatchObject({ code: "outcome_unknown" });
  expect(callsOf(web)).toBe(3);
});

test("if a stream ends without an answer, the outcome is unknown; if the call only reads, it is repeated", async () => {
  const web = await callEnds((asked, time) => {
    const result = { content: [{ type: "text", text: "second" }] };
    if (time > 1) return json(asked, { result });
    asked.response.writeHead(200, { "content-type": "text/event-stream" }).end(": nothing\n\n");
  });
  const outside = openOutside(mcpWith([httpServer("web", web.url)]), quietWorld());
  expect(await outside.call("mcp__web__see")).toEqual({ status: "ok", text: "second" });
});

test.each([
  ["application/json", (text: string) => text],
  ["text/event-stream", (text: string) => `event: message\ndata: ${text}\n\n`],
])("only the start of an endless or oversized answer (%s) is read", async (type, framed) => {
  const web = await callEnds(({ id, response }) => {
    const result = { content: [{ type: "text", text: "x".repeat(26 * 1024 * 1024) }] };
    response
      .writeHead(200, { "content-type": type })
      .end(framed(JSON.stringify({ jsonrpc: "2.0", id, result })));
  });
  const outside = openOutside(mcpWith([httpServer("web", web.url)]), quietWorld());
  const { status, code } = await outside.call("mcp__web__go");
  expect(status).toBe("error");
  expect(["mcp_failed", "outcome_unknown"]).toContain(code);
});

test.each([
  ["application/json", (text: string) => text],
  ["text/event-stream", (text: string) => `: "\nevent: message\ndata: ${text}\n\n`],
])("an answer with too many values (%s) is not parsed", async (type, framed) => {
  const web = await callEnds(({ id, response }) => {
    const text = `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"list":[${"{},".repeat(200_000)}0]}}`;
    response.writeHead(200, { "content-type": type }).end(framed(text));
  });
  const outside = openOutside(mcpWith([httpServer("web", web.url)]), quietWorld());
  const { status, code } = await outside.call("mcp__web__go");
  expect(status).toBe("error");
  expect(["mcp_failed", "outcome_unknown"]).toContain(code);
});

test("if a call is too slow, it is cancelled, and its connection is released", async () => {
  const web = await callEnds(({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": wait\n\n");
  });
  const world = fakeWorld();
  const outside = openOutside(mcpWith([httpServer("web", web.url, { timeoutSeconds: 5 })]), world);
  await outside.set();
  const result = outside.call("mcp__web__go");
  const call = await web.saw(isCall);
  const closed = once(call.response, "close");
  await world.advance(5_000);
  expect(await result).toMatchObject({ code: "mcp_timeout" });
  const cancelled = await web.saw(({ method }) => method === "notifications/cancelled");
  expect(cancelled.params?.requestId).toBe(call.id);
  await closed;
});

test("if the server has forgotten the session, the call is repeated in a new session", async () => {
  let sessions = 0;
  const web = await openWeb((asked) => {
    if (asked.method === "initialize") {
      sessions += 1;
      const result = {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "w", version: "1" },
      };
      json(asked, { result }, { "mcp-session-id": `s${sessions}` });
      return true;
    }
    if (!isCall(asked)) return false;
    const isOld = asked.request.headers["mcp-session-id"] === "s1";
    if (isOld) asked.response.writeHead(404).end();
    else json(asked, { result: { content: [{ type: "text", text: "here" }] } });
    return true;
  });
  const outside = openOutside(mcpWith([httpServer("web", web.url)]), quietWorld());
  expect(await outside.call("mcp__web__go")).toEqual({ status: "ok", text: "here" });
  expect(sessions).toBe(2);
});

test("the error after a failed authentication says what to check, and contains no token", async () => {
  const web = await openWeb(({ request, response }) => {
    const { authorization } = request.headers;
    response.writeHead(401, { "content-type": "text/plain" }).end(`no: ${authorization}`);
    return true;
  });
  const world = fakeWorld();
  const headers = { Authorization: "Bearer sesame-open-7788" };
  const outside = openOutside(mcpWith([httpServer("web", web.url, { headers })]), world);
  const { missing } = await outside.set();
  expect(missing).toMatchObject([
    { why: "it did not start: it answered 401: look at its headers in the configuration" },
  ]);
  expect(web.asked[0]?.request.headers.authorization).toBe(headers.Authorization);
  expect(JSON.stringify([missing, world.logged])).not.toContain("sesame");
});

test("after a redirect to another address, the headers are not sent there", async () => {
  const other = await openWeb(() => false);
  const web = await openWeb(({ response }) => {
    response.writeHead(307, { location: other.url }).end();
    return true;
  });
  const headers = { "x-api-key": "sesame-open-7788" };
  const outside = openOutside(mcpWith([httpServer("web", web.url, { headers })]), quietWorld());
  expect((await outside.set()).missing.length).toBe(1);
  expect(other.asked).toEqual([]);
});

test("a redirect within the server's own origin is followed, with the same method and headers", async () => {
  const moved: [string, string, unknown][] = [];
  const web = await openWeb(({ request, response }) => {
    const { method = "", url = "", headers } = request;
    moved.push([method, url, headers["x-api-key"]]);
    if (url.endsWith("/")) return false;
    response.writeHead(307, { location: `${url}/` }).end();
    return true;
  });
  const headers = { "x-api-key": "sesame-open-7788" };
  const outside = openOutside(mcpWith([httpServer("web", web.url, { headers })]), quietWorld());
  expect((await outside.set()).missing).toEqual([]);
  const posts = moved.filter(([method]) => method === "POST");
  expect(posts.filter(([, url]) => url.endsWith("/")).length).toBe(posts.length / 2);
  expect(new Set(posts.map(([, , key]) => key))).toEqual(new Set([headers["x-api-key"]]));
});

test("an address without an MCP server is reported", async () => {
  const web = await openWeb(({ response }) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<h1>Hello</h1>");
    return true;
  });
  const outside = openOutside(mcpWith([httpServer("web", web.url)]), quietWorld());
  const { missing } = await outside.set();
  expect(missing[0]?.why).toContain("it did not start");
  expect(missing[0]?.why).not.toContain("Hello");
});
