// Helpers for the tests of the A2A door: the official client over each binding, messages for it, and receivers
// of notifications.

import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import type {
  Message,
  SendMessageRequest,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
} from "@a2a-js/sdk";
import { Role } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import type { RunInput } from "../../../src/core/shapes/run.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { type House, openHouse, TOKEN } from "../kit.ts";

export const BINDINGS = ["JSONRPC", "HTTP+JSON"] as const;
export type BindingName = (typeof BINDINGS)[number];
export const EXPOSED = { expose: ["research"], notifyHosts: [], descriptions: { research: "Reads papers." } };

/** Opens a gateway whose agent `research` can be reached. */
export function openExposed(options: Parameters<typeof openHouse>[0] = {}): Promise<House> {
  return openHouse({ ...options, choices: { features: { a2a: EXPOSED }, ...options.choices } });
}

/** Returns the limit of tokens that each turn has from the gateway or program that asked for it. */
export async function limitsIn({ store }: House): Promise<(number | undefined)[]> {
  const turns = store.db.selectFrom("runs").where("kind", "=", "turn").orderBy("accepted_at");
  const rows = await turns.select("input_json").execute();
  return rows.map(({ input_json }) => (JSON.parse(input_json) as RunInput).tokenLimit);
}

/** Returns the states of all runs, in the order of their acceptance. */
export async function runStates({ store }: Pick<House, "store">): Promise<string[]> {
  const rows = await store.db.selectFrom("runs").select("state").orderBy("accepted_at").execute();
  return rows.map(({ state }) => state);
}

/** Returns the official client for an agent. It reads the agent's card first. */
export function a2aClient(
  house: Pick<House, "http">,
  { binding = "JSONRPC", token = TOKEN, agentId = "research" }: Partial<ClientWishes> = {},
): Promise<Client> {
  const fetchImpl: typeof fetch = (url, init) => {
    const headers = new Headers(init?.headers);
    headers.set("authorization", `Bearer ${token}`);
    return fetch(url, { ...init, headers });
  };
  const transports = [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })];
  const factory = new ClientFactory({ transports, preferredTransports: [binding] });
  return factory.createFromUrl(`${house.http}/a2a/${agentId}/`);
}

interface ClientWishes {
  readonly binding: BindingName;
  readonly token: string;
  readonly agentId: string;
}

let counted = 0;

/** Returns a message with a text. */
export function saying(text: string, more: Partial<Message> = {}): SendMessageRequest {
  counted += 1;
  const part = { content: { $case: "text" as const, value: text }, metadata: undefined };
  return {
    tenant: "",
    configuration: undefined,
    metadata: undefined,
    message: {
      messageId: `message-${counted}`,
      contextId: "",
      taskId: "",
      role: Role.ROLE_USER,
      parts: [{ ...part, filename: "", mediaType: "text/plain" }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
      ...more,
    },
  };
}

/** Returns the task in an answer to a message. */
export async function taskIn(answer: ReturnType<Client["sendMessage"]>): Promise<Task> {
  const given = await answer;
  if (!("id" in given)) throw new Error("a task was expected");
  return given;
}

/** Returns the texts of a task's artifacts. */
export function textsIn({ artifacts }: Pick<Task, "artifacts">): string[] {
  return artifacts.flatMap(({ parts }) =>
    parts.map(({ content }) => (content?.$case === "text" ? content.value : `${content?.$case}`)),
  );
}

/** Reads a stream to its end. `text`: the text that a reader of the artifact has then. */
export async function readStream(stream: AsyncIterable<StreamResponse>) {
  const payloads: NonNullable<StreamResponse["payload"]>[] = [];
  let text = "";
  for await (const { payload } of stream) {
    if (payload === undefined) continue;
    payloads.push(payload);
    if (payload.$case !== "artifactUpdate") continue;
    const [piece = ""] =
      payload.value.artifact === undefined ? [] : textsIn({ artifacts: [payload.value.artifact] });
    text = payload.value.append ? text + piece : piece;
  }
  const last = payloads.at(-1);
  const end = last?.$case === "statusUpdate" ? last.value.status : undefined;
  return { payloads, kinds: payloads.map(({ $case }) => $case), text, end };
}

export interface Got {
  readonly method: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: unknown;
}

/** Starts a receiver of notifications. `status`: its answer to each request. */
export async function receiver(status: (index: number) => number = () => 204, port = 0) {
  const got: Got[] = [];
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const text = Buffer.concat(pieces).toString();
    const { method, headers } = request;
    got.push({ method, headers, text, body: JSON.parse(text) });
    response.writeHead(status(got.length - 1)).end();
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  cleanup(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { got, host, url: `http://${host}/told` };
}

/** Returns an address for notifications, with a token and credentials. */
export function addressOf(
  url: string,
  more: Partial<TaskPushNotificationConfig> = {},
): TaskPushNotificationConfig {
  const authentication = { scheme: "Bearer", credentials: "for-the-receiver" };
  return { tenant: "", id: "", taskId: "", url, token: "my-token", authentication, ...more };
}

/** Returns the options of a message that returns at once, and has this address. */
export const asking = (taskPushNotificationConfig: TaskPushNotificationConfig | undefined) => ({
  ...{ acceptedOutputModes: [], returnImmediately: true },
  taskPushNotificationConfig,
});
