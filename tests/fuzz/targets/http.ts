// HTTP requests of every kind, written directly to the socket: paths, headers, wrong lengths, bodies.

import { connect as dial } from "node:net";
import fc, { type Arbitrary } from "fast-check";
import { TOKEN } from "../../gateway/kit.ts";
import { damagedText, damagedTree } from "../mutate.ts";
import { nastyText } from "../nasty.ts";
import { type FuzzTarget, must, shown } from "../target.ts";
import {
  type FuzzedHouse,
  fillHouse,
  HOOK_TOKEN,
  MAIN_TOKEN,
  OTHER,
  openFuzzedHouse,
  READER_TOKEN,
} from "../wire.ts";
import { rowCounts, untilSettled } from "../witness.ts";

/** Kinds of headers that describe the body. */
const LENGTHS = ["right", "none", "more", "less", "huge", "two", "chunked", "wrong chunks"] as const;

interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly length: (typeof LENGTHS)[number];
  readonly body: string;
}

const BODY_MAX_BYTES = 1024 * 1024;
const PATHS = [
  "/tools/invoke",
  "/tools/invoke",
  "/healthz",
  "/readyz",
  "/",
  "/tools/invoke/",
  "/tools//invoke",
  "/TOOLS/INVOKE",
  "/tools/invoke?x=1",
  "/tools%2finvoke",
  "/../tools/invoke",
  "*",
  "http://127.0.0.1/tools/invoke",
  "//evil/tools/invoke",
  "/metrics",
  "/hooks/agent",
  "/hooks/wake",
  "/hooks/signed",
  "/hooks/agent?token=x",
  "/hooks/agent/../wake",
];
const HOSTS = [
  "127.0.0.1",
  "localhost:7275",
  "[::1]",
  "LOCALHOST",
  "evil.example",
  "127.0.0.1.evil.example",
  "localhost@evil.example",
  "localhost:80:80",
  "127.1",
  "localhost.",
  "2130706433",
  "",
];
const ORIGINS = [
  "http://127.0.0.1",
  "https://127.0.0.1",
  "null",
  "http://evil.example",
  "http://127.0.0.1@evil.example",
  "file://",
  "http://localhost:7275",
];
const AUTHS = [TOKEN, MAIN_TOKEN, READER_TOKEN, HOOK_TOKEN, "token-of-a-node", "wrong", ""].flatMap(
  (token) => [`Bearer ${token}`, `bearer  ${token} `, `Basic ${token}`, token],
);

const header: Arbitrary<readonly [string, string]> = fc.oneof(
  fc.tuple(fc.constantFrom("Host", "host"), damagedText(fc.constantFrom(...HOSTS), 1)),
  fc.tuple(fc.constant("Origin"), damagedText(fc.constantFrom(...ORIGINS), 1)),
  fc.tuple(fc.constant("Authorization"), damagedText(fc.constantFrom(...AUTHS), 1)),
  fc.tuple(
    fc.constantFrom(
      "Expect",
      "Upgrade",
      "Connection",
      "Transfer-Encoding",
      "Content-Type",
      "Content-Length",
      "Cookie",
      "X-Forwarded-For",
      "Content-Encoding",
    ),
    fc.oneof(
      fc.constantFrom(
        "100-continue",
        "websocket",
        "close",
        "chunked",
        "gzip",
        "application/json",
        "5",
        "-1",
        "5, 5",
        "keep-alive",
      ),
      nastyText(60),
    ),
  ),
  fc.tuple(fc.constant("X-Parley-Token"), fc.constantFrom(TOKEN, HOOK_TOKEN, "wrong")),
  fc.tuple(fc.constant("X-Hub-Signature-256"), fc.constant(`sha256=${"0".repeat(64)}`)),
  fc.tuple(nastyText(20), nastyText(20_000)),
);

const call = fc.constantFrom(
  { tool: "sessions_list", args: {} },
  { tool: "sessions_list", args: { limit: 2 }, sessionKey: "main" },
  { tool: "write", args: { path: "a.txt", content: "x" } },
  { tool: "sessions_send", args: { sessionKey: OTHER, message: "m", timeoutSeconds: 0 } },
  { tool: "exec", args: { command: "true" } },
);
const hook = fc.constantFrom(
  { message: "m" },
  { message: "m", sessionKey: "hook:a", agentId: "research", idempotencyKey: "i" },
  { message: "m", deliver: true, to: "main", channel: "webchat", name: "n", thinking: "off" },
  { text: "t", mode: "next-heartbeat" },
);
const HOOK_FIELDS = ["message", "text", "sessionKey", "to", "deliver", "name", "idempotencyKey"];
const body = fc.oneof(
  {
    weight: 5,
    arbitrary: damagedTree(call, ["tool", "args", "sessionKey", "idempotencyKey"], 2).map(
      (one) => JSON.stringify(one) ?? "",
    ),
  },
  {
    weight: 2,
    arbitrary: damagedTree(hook, HOOK_FIELDS, 2).map((one) => JSON.stringify(one) ?? ""),
  },
  { weight: 1, arbitrary: damagedText(call.map((one) => JSON.stringify(one))) },
  { weight: 1, arbitrary: nastyText(2_000_000) },
);

const request: Arbitrary<Request> = fc.record({
  method: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom("POST", "POST", "POST", "GET") },
    { weight: 1, arbitrary: fc.constantFrom("PUT", "HEAD", "OPTIONS", "CONNECT", "TRACE", "post", "PRI") },
  ),
  path: fc.oneof(
    { weight: 8, arbitrary: fc.constant("/tools/invoke") },
    { weight: 8, arbitrary: fc.constantFrom(...PATHS) },
    { weight: 4, arbitrary: fc.constantFrom("/hooks/agent", "/hooks/wake") },
    { weight: 1, arbitrary: damagedText(fc.constantFrom(...PATHS)) },
  ),
  headers: fc
    .tuple(
      fc.oneof(
        { weight: 5, arbitrary: fc.constant([["Host", "127.0.0.1"]] as const) },
        { weight: 1, arbitrary: fc.constant([]) },
      ),
      fc.oneof(
        {
          weight: 5,
          arbitrary: fc.constantFrom(TOKEN, MAIN_TOKEN, READER_TOKEN, HOOK_TOKEN).map(
            (token) =>
              [
                ["Authorization", `Bearer ${token}`],
                ["Content-Type", "application/json"],
              ] as const,
          ),
        },
        { weight: 2, arbitrary: fc.constant([]) },
      ),
      fc.array(header, { maxLength: 3 }),
    )
    .map((parts) => parts.flat()),
  length: fc.oneof(
    { weight: 6, arbitrary: fc.constant("right" as const) },
    { weight: 4, arbitrary: fc.constantFrom(...LENGTHS) },
  ),
  body,
});

function lengthHeaders(length: Request["length"], bytes: number): string[] {
  switch (length) {
    case "right":
      return [`Content-Length: ${bytes}`];
    case "none":
      return [];
    case "more":
      return [`Content-Length: ${bytes + 10}`];
    case "less":
      return [`Content-Length: ${Math.max(0, bytes - 10)}`];
    case "huge":
      return [`Content-Length: ${BODY_MAX_BYTES * 8}`];
    case "two":
      return [`Content-Length: ${bytes}`, `Content-Length: ${bytes + 1}`];
    default:
      return ["Transfer-Encoding: chunked"];
  }
}

function bytesOf({ method, path, headers, length, body: text }: Request): Buffer {
  const sent = Buffer.from(text);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...lengthHeaders(length, sent.length),
    "Connection: close",
  ];
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
  if (length === "chunked")
    return Buffer.concat([
      head,
      Buffer.from(`${sent.length.toString(16)}\r\n`),
      sent,
      Buffer.from("\r\n0\r\n\r\n"),
    ]);
  if (length === "wrong chunks") return Buffer.concat([head, Buffer.from("fffffffff\r\n"), sent]);
  return Buffer.concat([head, sent]);
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Removes `100 Continue`, which is not a final answer. */
const final = (heard: string): string => heard.replace(/^(HTTP\/1\.1 100 [^\r]*\r\n\r\n)+/, "");

/** Parses the first final answer in the received bytes. */
function answerIn(heard: string): Answer | undefined {
  const rest = final(heard);
  const found = /^HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n/.exec(rest);
  if (found === null) return undefined;
  const text = rest.slice(found[0].length);
  const length = /^content-length: (\d+)/im.exec(found[2] ?? "")?.[1];
  const bytes = Buffer.from(text);
  const status = Number(found[1]);
  if (status === 101) return { status, body: text };
  // Bytes after the body answer a second request, which the input's own body may contain.
  if (length !== undefined && bytes.length >= Number(length)) {
    return { status, body: bytes.toString("utf8", 0, Number(length)) };
  }
  return undefined;
}

/** Sends all bytes, and closes after the answer, or when no answer is expected. */
async function exchange(house: FuzzedHouse, given: Request): Promise<Answer | undefined> {
  const socket = dial({ port: house.port, host: "127.0.0.1", allowHalfOpen: true });
  const over = Promise.withResolvers<void>();
  let heard = "";
  socket.setEncoding("utf8");
  socket.on("error", () => over.resolve());
  socket.on("close", () => over.resolve());
  socket.on("end", () => over.resolve());
  socket.on("data", (piece) => {
    heard += piece;
    if (answerIn(heard) !== undefined) over.resolve();
  });
  socket.write(bytesOf(given), () => {
    // If the client announced more bytes than it sends, the client must close the connection, because the
    // gateway waits for the rest.
    if (!isWhole(given)) socket.end();
  });
  await over.promise;
  socket.destroy();
  // An answer that the close interrupted contains at least a status.
  const status = /^HTTP\/1\.1 (\d{3})/.exec(final(heard))?.[1];
  return answerIn(heard) ?? (status === undefined ? undefined : { status: Number(status), body: "" });
}

/**
 * Returns true if a request is ordinary: its headers describe the body correctly, and none asks for another
 * protocol.
 */
function isWhole({ method, path, headers, length }: Request): boolean {
  const plain = headers.every(
    ([name, value]) =>
      /^(host|origin|authorization|content-type|cookie|x-forwarded-for)$/i.test(name) &&
      /^[\x20-\x7e]*$/.test(value),
  );
  return (
    plain &&
    ["right", "chunked"].includes(length) &&
    ["GET", "POST"].includes(method) &&
    /^[/*h][\x21-\x7e]*$/.test(path)
  );
}

/** Valid statuses. Node's own answers to invalid HTTP (400, 408, 417, 431, 501) have no body. */
const STATUS_CODES = [
  101, 200, 202, 400, 401, 403, 404, 405, 409, 413, 417, 426, 429, 431, 500, 501, 502, 503, 504,
];
const ADMINS = [TOKEN, MAIN_TOKEN];

/** Checks a tool call with a second implementation of the route's rule: which callers may invoke a tool. */
function checkCalled({ method, path, headers, body: text }: Request, answer: Answer): void {
  const all = (name: string): string[] =>
    headers.filter(([one]) => one.toLowerCase() === name).map(([, value]) => value.trim());
  const { pathname } = new URL(path, "http://127.0.0.1");
  must(method === "POST" && pathname === "/tools/invoke", `${method} ${shown(path)} called a tool`);
  const hosts = all("host");
  must(
    hosts.every((host) => /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i.test(host)),
    `${shown(hosts)} called a tool`,
  );
  must(
    all("origin").every((origin) => /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.test(origin)),
    "another page called a tool",
  );
  const [token] = all("authorization").map((value) => /^bearer\s+(\S+)$/i.exec(value)?.[1] ?? "");
  must(ADMINS.includes(token ?? ""), `${shown(token)} called a tool`);
  must(Buffer.byteLength(text) <= BODY_MAX_BYTES + 10, "a body over the limit called a tool");
  const { ok, result } = JSON.parse(answer.body) as { ok: boolean; result: Record<string, unknown> };
  must(typeof ok === "boolean" && typeof result === "object", `answered with ${shown(answer.body)}`);
}

/**
 * Checks a web hook with a second implementation of the rule: it needs the hooks' own token in a header, and
 * JSON.
 */
function checkHooked({ method, path, headers }: Request): void {
  const { pathname, search } = new URL(path, "http://127.0.0.1");
  must(method === "POST" && /^\/hooks\/(agent|wake)$/.test(pathname), `${method} ${shown(path)} was a hook`);
  must(!search.includes("token"), "a token in an address was taken");
  const given = headers.flatMap(([name, value]) =>
    /^(authorization|x-parley-token)$/i.test(name) ? [value.trim().replace(/^bearer\s+/i, "")] : [],
  );
  must(given.includes(HOOK_TOKEN), `${shown(given)} sent a hook`);
  must(
    headers.some(([name, value]) => /^content-type$/i.test(name) && /json/i.test(value)),
    "what is no JSON was a hook",
  );
}

/**
 * Returns true if the answer is allowed to be other than JSON: files of the web page, which may be
 * compressed, and metrics.
 */
function isOtherText({ method, path }: Request, status: number): boolean {
  if (method !== "GET" || status !== 200) return false;
  const base = "http://127.0.0.1";
  const { pathname } = URL.canParse(path, base) ? new URL(path, base) : { pathname: "" };
  return ["/", "/icon.svg", "/metrics"].includes(pathname) || pathname.startsWith("/assets/");
}

/** Waits until the gateway has done what earlier connections asked for, also if they are closed. */
async function settled(house: FuzzedHouse): Promise<void> {
  // The gateway reads what has arrived before, no later than this request.
  await (await fetch(`${house.http}/healthz`)).text();
  await untilSettled(house.store);
}

export const http: FuzzTarget<Request> = {
  name: "http",
  proves:
    "an answer in JSON (but for page and metrics) with a known status; a tool is called for a good token, host and origin only; 413 unread",
  inputs: request,
  roundRuns: 300,
  ciRuns: 1_000,
  async open() {
    const house = await openFuzzedHouse();
    await fillHouse(house, ["agent:main:telegram:group:0", OTHER]);
    return {
      async check(input) {
        const before = await rowCounts(house.store);
        const answer = await exchange(house, input);
        house.forgive();
        if (answer === undefined) {
          must(!isWhole(input), "a whole request is not answered");
          // The gateway may still do what was asked for.
          await settled(house);
          return;
        }
        const { status, body: text } = answer;
        must(STATUS_CODES.includes(status), `status ${status}`);
        must(status !== 500, `an error that nobody expected: ${shown(text)}`);
        if (text !== "" && status !== 101 && !isOtherText(input, status)) JSON.parse(text);
        // A refusal by the tool is an ordinary answer, so it may be stored under an idempotency key.
        const isCall = [200, 403, 404].includes(status) && text.includes('"result":');
        if (isCall) checkCalled(input, answer);
        else if (status === 202) checkHooked(input);
        else {
          const after = await rowCounts(house.store);
          must(after === before, `answered with ${status}, and something was written: ${before} → ${after}`);
        }
        const hasHost = input.headers.some(
          ([name, value]) => name.toLowerCase() === "host" && URL.canParse(`http://${value}`),
        );
        const asks = isWhole(input) && hasHost && input.path === "/tools/invoke" && input.method === "POST";
        if (asks && Buffer.byteLength(input.body) > BODY_MAX_BYTES)
          must([401, 403, 413, 429].includes(status), `a large body is answered with ${status}`);
        // A hook or a second request in the body may still write after the answer.
        await settled(house);
      },
      async close() {
        const last = await fetch(`${house.http}/healthz`);
        must(last.status === 200, `not live in the end: ${last.status}`);
        await house.close();
      },
    };
  },
};
