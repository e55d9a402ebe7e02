// Devices that connect as nodes over real sockets: they have a key, sign the challenge, and give scripted
// answers.

import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { connectParams, type Frame, type House, openRaw, type Raw, TOKEN } from "../kit.ts";

export const NODE_TOKEN = "the-token-of-the-nodes";
/** Tokens in the configuration of a gateway, for nodes. */
export const NODE_TOKENS = [{ token: NODE_TOKEN, role: "node", scopes: [] }] as const;

export interface Device {
  readonly id: string;
  readonly publicKey: string;
  sign(text: string): string;
}

export function newDevice(): Device {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  return {
    id: createHash("sha256").update(raw).digest("hex"),
    publicKey: raw.toString("base64url"),
    sign: (text) => sign(null, Buffer.from(text), privateKey).toString("base64url"),
  };
}

export interface NodeWords {
  readonly token?: string;
  readonly name?: string;
  readonly commands?: readonly string[];
  readonly caps?: readonly string[];
  /** Replaces the proof that the device would send. */
  readonly device?: unknown;
}

/** Returns the connect params of a device for this challenge. */
export function nodeParams(key: Device, nonce: string, words: NodeWords = {}): Record<string, unknown> {
  const { token = NODE_TOKEN, name = "laptop", commands = ["exec", "notify"], caps = [] } = words;
  const proof = { id: key.id, publicKey: key.publicKey, signature: key.sign(nonce), signedAt: 1, nonce };
  return connectParams({
    client: { id: "a-node", version: "1", platform: "test", mode: "node", displayName: name },
    role: "node",
    auth: { token },
    commands,
    caps,
    device: "device" in words ? words.device : proof,
  });
}

/** Tries to connect as a node, and returns the answer. */
export async function tryNode(
  house: Pick<House, "url">,
  key: Device,
  words: NodeWords = {},
): Promise<{ raw: Raw; answer: Frame }> {
  const raw = await openRaw(house.url);
  const challenge = await raw.next((frame) => frame.event === "connect.challenge");
  const params = nodeParams(key, challenge.payload.nonce, words);
  raw.send({ type: "req", id: "hello", method: "connect", params });
  return { raw, answer: await raw.res("hello") };
}

/** Connects a paired device as a node. */
export async function joinedNode(
  house: Pick<House, "url">,
  key: Device,
  words: NodeWords = {},
): Promise<Raw> {
  const { raw, answer } = await tryNode(house, key, words);
  if (answer.ok !== true) throw new Error(answer.error?.message);
  return raw;
}

/** Returns the pairing code in an answer to a device. */
export function codeIn(answer: Frame): string {
  const pairing = answer.error?.details?.pairing as { code: string } | undefined;
  if (pairing === undefined) throw new Error(`no code in ${JSON.stringify(answer)}`);
  return pairing.code;
}

/** Creates a device that an operator pairs, with the real methods. */
export async function pairedDevice(
  house: Pick<House, "url" | "client">,
  token = NODE_TOKEN,
  words: NodeWords = {},
): Promise<Device> {
  const key = newDevice();
  const { raw, answer } = await tryNode(house, key, { token, ...words });
  raw.socket.terminate();
  const admin = await house.client({ token: TOKEN });
  await admin.request("node.pair.approve", { code: codeIn(answer) });
  admin.close();
  return key;
}

/** Returns the next command for the node. `at`: the number of earlier commands. */
export async function asked(raw: Raw, at = 0): Promise<Frame["payload"]> {
  const of = (): Frame[] => raw.frames.filter(({ event }) => event === "node.invoke.request");
  const frame = await raw.next(() => of()[at] !== undefined).then(() => of()[at]);
  return frame?.payload;
}

/** Sends the node's answer to a command. */
export function answer(raw: Raw, request: { id: string; nodeId: string }, said: object): void {
  const params = { id: request.id, nodeId: request.nodeId, ...said };
  raw.send({ type: "req", id: `answer-${request.id}`, method: "node.invoke.result", params });
}

let events = 0;

/** Sends an event of the node, and returns the gateway's answer. */
export async function said(raw: Raw, event: string, payload: unknown, more: object = {}): Promise<Frame> {
  const id = `event-${++events}`;
  raw.send({ type: "req", id, method: "node.event", params: { event, payload, ...more } });
  return raw.res(id);
}

/** Connects with the device's signature over the challenge. */
export async function connectDevice(
  house: Pick<House, "url">,
  key: Device,
  more: Record<string, unknown> = {},
) {
  const raw = await openRaw(house.url);
  const { nonce } = (await raw.next((frame) => frame.event === "connect.challenge")).payload;
  const proof = { id: key.id, publicKey: key.publicKey, signature: key.sign(nonce), signedAt: 1, nonce };
  raw.send({ type: "req", id: "c", method: "connect", params: connectParams({ ...more, device: proof }) });
  const { payload, error } = await raw.res("c");
  return { raw, error, token: payload?.auth.deviceToken as string };
}
