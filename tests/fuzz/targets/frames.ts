// WebSocket frames of every kind, before and after `connect`, while other clients use the gateway.

import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { once } from "node:events";
import { connect as dial } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc, { type Arbitrary } from "fast-check";
import { METHODS, type MethodName } from "../../../src/contract/methods.ts";
import { CLOSE } from "../../../src/contract/protocol.ts";
import { CODES } from "../../../src/core/shapes/errors.ts";
import { toolNames } from "../../../src/tools/catalog.ts";
import { type Device, nodeParams, pairedDevice } from "../../gateway/clients/devices.ts";
import { connectParams, type Frame, TOKEN } from "../../gateway/kit.ts";
import { codesOf } from "../../kit/reference/codes.ts";
import { damagedText, damagedTree } from "../mutate.ts";
import { nastyText, nastyValue } from "../nasty.ts";
import { typed } from "../schemas.ts";
import { type FuzzTarget, must, shown } from "../target.ts";
import {
  asker,
  type Caller,
  call,
  type FuzzedHouse,
  fillHouse,
  MAIN_TOKEN,
  OTHER,
  openFuzzedHouse,
  READER_TOKEN,
} from "../wire.ts";
import { rowCounts, rowsOfSession, settledCounts, untilIdle } from "../witness.ts";

const NODE_TOKEN = "token-of-a-node";

type Step =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "binary"; readonly size: number }
  /** Bytes that are not a valid WebSocket frame, on a separate connection. */
  | { readonly kind: "bytes"; readonly bytes: readonly number[] };

interface Storm {
  readonly before: readonly Step[];
  readonly token: string;
  readonly after: readonly Step[];
}

const GROUP = "agent:main:telegram:group:0";
const WORDS = [
  ...[
    "main",
    "agent:main:main",
    OTHER,
    GROUP,
    "agent:main:telegram:group:2",
    "id-0",
    "m-0-2",
    "d-0",
    "global",
    "unknown",
  ],
  ...[
    "run-1",
    "run-2",
    "run-3",
    "webchat",
    "telegram",
    "low",
    "offline/rehearsal",
    "hello",
    "alpha",
    "off",
    "operator.admin",
  ],
  ...toolNames(),
];
/** Values that are usually valid for their parameter. */
const SESSIONS = ["main", "agent:main:main", GROUP, "agent:main:telegram:group:2", OTHER, "id-0"];
const VALUES = {
  key: SESSIONS,
  sessionKey: SESSIONS,
  sessionId: ["id-0"],
  keys: [["main"], [GROUP, "main"]],
  to: [GROUP],
  runId: ["run-1", "run-2"],
  idempotencyKey: Array.from({ length: 500 }, (_, index) => `run-${index}`),
  agentId: ["main", "research"],
  channel: ["webchat", "last"],
  limit: [1, 50, 5_000],
  timeoutMs: [0, 1],
  timeout: [0, 5],
  attachments: [[]],
  thinking: ["low", "off"],
  thinkingLevel: ["low", null],
  verboseLevel: ["on", null],
  model: ["offline/rehearsal", null],
  archived: [false],
  before: ["m-0-2"],
  cursor: ["2"],
  id: ["d-0", "d-2"],
  name: toolNames(),
  args: [
    {},
    { sessionKey: GROUP },
    { sessionKey: OTHER, message: "m", timeoutSeconds: 1 },
    { path: "a", content: "b" },
  ],
  arguments: [{}, { query: "alpha" }, { task: "t" }, { action: "cancel", sessionKey: "all" }],
};
const NAMES = [...new Set(Object.values(METHODS).flatMap(({ params }) => Object.keys(params.properties)))];

const params = (method: MethodName): Arbitrary<unknown> => {
  const near = typed({ ...METHODS[method].params }, { names: VALUES, words: WORDS });
  return fc.oneof({ weight: 3, arbitrary: near }, { weight: 1, arbitrary: damagedTree(near, NAMES, 2) });
};
const request: Arbitrary<unknown> = fc.oneof(
  ...Object.keys(METHODS).map((method) =>
    fc.record({
      type: fc.constant("req"),
      id: fc.oneof(
        { weight: 5, arbitrary: fc.constantFrom("1", "2", "3") },
        { weight: 1, arbitrary: nastyText(250) },
      ),
      method: fc.constant(method),
      params: params(method as MethodName),
    }),
  ),
);
const frame = fc.oneof(
  { weight: 6, arbitrary: request.map((one) => JSON.stringify(one)) },
  {
    weight: 3,
    arbitrary: damagedTree(request, ["type", "id", "method", "params"], 2).map(
      (one) => JSON.stringify(one) ?? "",
    ),
  },
  { weight: 1, arbitrary: damagedText(request.map((one) => JSON.stringify(one))) },
  {
    weight: 1,
    arbitrary: fc.oneof(
      nastyText(2_000_000),
      nastyValue().map((value) => JSON.stringify(value)),
    ),
  },
);
/** Returns a device with a key. Its signature belongs to a different challenge. */
function deviceOf(): object {
  const key = createPrivateKey({
    key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32, 7)]),
    format: "der",
    type: "pkcs8",
  });
  const publicKey = String(createPublicKey(key).export({ format: "jwk" }).x);
  const id = createHash("sha256").update(Buffer.from(publicKey, "base64url")).digest("hex");
  const signature = sign(null, Buffer.from("another challenge"), key).toString("base64url");
  return { id, publicKey, signature, signedAt: 1_800_000_000_000, nonce: "x" };
}

const device = deviceOf();
const GREETINGS = [TOKEN, MAIN_TOKEN, READER_TOKEN, NODE_TOKEN, "wrong"].flatMap((token) => {
  const params = connectParams({ auth: { token }, scopes: ["operator.admin"], role: "operator" });
  return [params, params, { ...params, device }];
});
const hello = damagedTree(
  fc.constantFrom(...GREETINGS).map((params) => ({ type: "req", id: "c", method: "connect", params })),
  ["auth", "token", "deviceToken", "password", "role", "scopes", "device", "nonce", "minProtocol", "client"],
  2,
).map((one) => JSON.stringify(one) ?? "");

const text = (arbitrary: Arbitrary<string>, charsMax = 1 << 21): Arbitrary<Step> =>
  arbitrary.map((one) => ({ kind: "text", text: one.slice(0, charsMax) }));
const binary = (sizeMax: number): Arbitrary<Step> =>
  fc.record({ kind: fc.constant("binary"), size: fc.oneof(fc.nat(100), fc.nat(sizeMax)) });
const bytes: Arbitrary<Step> = fc.record({
  kind: fc.constant("bytes"),
  bytes: fc.array(fc.nat(255), { maxLength: 40 }),
});
/** More bytes than an unauthenticated client may send. The gateway takes a second to close the connection. */
const flood: Arbitrary<Step> = fc.oneof(text(fc.constant("x".repeat(70_000))), binary(200_000));
const STRANGER_CHARS_MAX = 15_000;
const strange: Arbitrary<Step> = fc.oneof(
  { weight: 120, arbitrary: text(hello, STRANGER_CHARS_MAX) },
  { weight: 30, arbitrary: text(frame, STRANGER_CHARS_MAX) },
  { weight: 20, arbitrary: binary(50_000) },
  { weight: 30, arbitrary: bytes },
  { weight: 1, arbitrary: flood },
);
const storm: Arbitrary<Storm> = fc.record({
  before: fc.array(strange, { maxLength: 2 }),
  token: fc.constantFrom(MAIN_TOKEN, MAIN_TOKEN, READER_TOKEN, NODE_TOKEN),
  after: fc.array(
    fc.oneof({ weight: 20, arbitrary: text(frame) }, { weight: 1, arbitrary: binary(200_000) }),
    { maxLength: 8 },
  ),
});

/** Valid close codes. The WebSocket library itself uses 1002, 1007 and 1009 for invalid frames. */
const CLOSE_CODES: readonly number[] = [...Object.values(CLOSE), 1007];
const RPC_CODES: readonly string[] = Object.values(CODES).map(({ rpc }) => rpc);

function parsed(textOfFrame: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(textOfFrame);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the id with which a frame must be answered. Returns undefined if the frame may wait for a run, or
 * if the answer's id may be `invalid`.
 */
function answerId(step: Step): string | undefined {
  const one = step.kind === "text" ? parsed(step.text) : undefined;
  if (one?.method === "agent.wait") return undefined;
  const usable = typeof one?.id === "string" && one.id !== "" && one.id.length <= 200;
  return usable && one !== undefined ? String(one.id) : "invalid";
}

/** Checks that every received frame has one of the protocol's types. */
function checkForms(frames: readonly Frame[]): void {
  for (const one of frames) {
    if (one.type === "event") continue;
    must(one.type === "res" && typeof one.id === "string", `a frame ${shown(one)}`);
    if (one.ok === true) continue;
    must(one.ok === false && one.error !== undefined, `an answer that is neither: ${shown(one)}`);
    must(RPC_CODES.includes(one.error.code) && one.error.message !== "", `an error ${shown(one.error)}`);
    must(one.error.details?.code !== "internal", `an error that nobody expected: ${shown(one.error)}`);
  }
}

/**
 * Checks that a method fails only with the codes in the reference. If two requests share an id, the method of
 * an answer is unknown.
 */
function checkCodes(frames: readonly Frame[], steps: readonly Step[]): void {
  const said = steps.map((step) => (step.kind === "text" ? parsed(step.text) : undefined));
  for (const { id, error } of frames) {
    const [one, another] = said.filter((request) => request?.id === id);
    const method = typeof one?.method === "string" ? one.method : "";
    if (error === undefined || another !== undefined || !Object.hasOwn(METHODS, method)) continue;
    const { code } = error.details ?? {};
    must(codesOf(method as MethodName).includes(String(code)), `${method} fails with ${shown(error)}`);
  }
}

function say(caller: Caller, step: Step): void {
  if (caller.socket.readyState !== caller.socket.OPEN) return;
  if (step.kind === "text") caller.socket.send(step.text);
  else if (step.kind === "binary") caller.socket.send(Buffer.alloc(step.size, 7));
}

/** Sends bytes after a real upgrade request. The connection must end, whatever the bytes are. */
async function sayBytes(house: FuzzedHouse, given: readonly number[]): Promise<void> {
  const socket = dial({ port: house.port, host: "127.0.0.1" });
  socket.on("error", () => {});
  await once(socket, "connect");
  const head = [
    "GET / HTTP/1.1",
    "Host: 127.0.0.1",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  const closed = once(socket, "close");
  socket.resume();
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  socket.end(Buffer.from(given));
  await closed;
}

const GOOD_TOKENS = [TOKEN, MAIN_TOKEN, READER_TOKEN, NODE_TOKEN];

/**
 * Sends a first frame. A `connect` with a valid token opens the connection with the token's rights, and every
 * other frame closes it.
 */
async function sayBefore(house: FuzzedHouse, step: Step): Promise<void> {
  if (step.kind === "bytes") return sayBytes(house, step.bytes);
  const caller = await call(house.url);
  say(caller, step);
  await caller.until((frames) => frames.some(({ type }) => type === "res"));
  checkForms(caller.frames);
  const answer = caller.frames.find(({ type }) => type === "res");
  if (answer?.ok === true) {
    const given = parsed(step.kind === "text" ? step.text : "")?.params ?? {};
    const {
      auth,
      device: proof,
      minProtocol,
      maxProtocol,
    } = given as {
      auth?: { token?: unknown; deviceToken?: unknown; password?: unknown };
      device?: unknown;
      minProtocol: number;
      maxProtocol: number;
    };
    const token = String(auth?.token ?? auth?.deviceToken ?? auth?.password);
    must(GOOD_TOKENS.includes(token), `connected with ${shown(auth)}`);
    must(proof === undefined, `connected with a device that proved nothing: ${shown(proof)}`);
    must(
      minProtocol <= 4 && maxProtocol >= 3,
      `connected with the protocols ${minProtocol} to ${maxProtocol}`,
    );
    const { scopes } = (answer.payload as { auth: { scopes: string[] } }).auth;
    if (token === READER_TOKEN)
      must(
        scopes.every((scope) => scope === "operator.read"),
        `a reader gets ${shown(scopes)}`,
      );
    if (token === NODE_TOKEN) must(scopes.length === 0, `a node gets ${shown(scopes)}`);
    caller.socket.terminate();
    return;
  }
  const code = await caller.closed;
  must(CLOSE_CODES.includes(code), `closed with ${code}`);
}

/**
 * Sends everything at once as a connected client. Each request gets an answer, unless the connection is
 * closed.
 */
async function sayAfter(house: FuzzedHouse, node: Device, { token, after }: Storm): Promise<void> {
  const caller = await call(house.url);
  const isChallenge = ({ event }: Frame): boolean => event === "connect.challenge";
  await caller.until((frames) => frames.some(isChallenge));
  const challenge = caller.frames.find(isChallenge);
  if (challenge === undefined) throw new Error("no challenge");
  const { nonce } = challenge.payload as { nonce: string };
  const params =
    token === NODE_TOKEN ? nodeParams(node, nonce, { token }) : connectParams({ auth: { token } });
  say(caller, {
    kind: "text",
    text: JSON.stringify({ type: "req", id: "c", method: "connect", params }),
  });
  await caller.until((frames) => frames.some(({ id }) => id === "c"));
  must(
    caller.frames.some(({ id, ok }) => id === "c" && ok === true),
    `not connected: ${shown(caller.frames)}`,
  );
  caller.frames.length = 0;
  for (const step of after) say(caller, step);
  const expected = new Map<string, number>();
  for (const id of after.map(answerId)) if (id !== undefined) expected.set(id, (expected.get(id) ?? 0) + 1);
  const isAnswered = (frames: readonly Frame[]): boolean =>
    [...expected].every(
      ([id, count]) => frames.filter((one) => one.type === "res" && one.id === id).length >= count,
    );
  const isCut = after.some(({ kind }) => kind === "binary");
  await caller.until((frames) => !isCut && isAnswered(frames));
  checkForms(caller.frames);
  checkCodes(caller.frames, after);
  if (caller.socket.readyState === caller.socket.OPEN)
    must(isAnswered(caller.frames), "a request was not answered");
  else must(CLOSE_CODES.includes(await caller.closed), `closed with ${await caller.closed}`);
  caller.socket.terminate();
  await caller.closed;
}

/** Returns the memory that remains in use after a garbage collection. */
function heldMb(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed / 1024 ** 2;
}

const HELD_MAX_MB = 200;

export const frames: FuzzTarget<Storm> = {
  name: "frames",
  proves:
    "each frame is answered or closes the connection with a documented code; nobody else is harmed or written to",
  inputs: storm,
  roundRuns: 200,
  ciRuns: 300,
  async open() {
    const house = await openFuzzedHouse();
    await fillHouse(house, [GROUP, OTHER, "agent:main:telegram:group:2"]);
    const bystander = await asker(house, TOKEN);
    const node = await pairedDevice(house, NODE_TOKEN);
    const history = async () =>
      JSON.stringify((await bystander.ask("chat.history", { sessionKey: OTHER })).payload);
    const before = await history();
    const others = await rowsOfSession(house.store, OTHER);
    const heldBefore = heldMb();
    return {
      async check(input) {
        const rows = await settledCounts(house.store);
        for (const step of input.before) await sayBefore(house, step);
        await sayAfter(house, node, input);
        await untilIdle(house.store);
        if (input.token !== MAIN_TOKEN) {
          const now = await rowCounts(house.store);
          must(now === rows, `${input.token} wrote something: ${rows} became ${now}`);
        }
        must((await rowsOfSession(house.store, OTHER)) === others, `${OTHER} was written to`);
        must((await history()) === before, "a bystander gets another answer than before");
        house.forgive();
      },
      async close() {
        const status = await bystander.ask("status");
        must(status.ok === true, `no status in the end: ${shown(status)}`);
        await house.close();
        const held = heldMb() - heldBefore;
        must(held < HELD_MAX_MB, `${Math.round(held)} MB are held after everything was closed`);
      },
    };
  },
};
