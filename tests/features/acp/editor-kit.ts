// Runs `parley acp` in the same way as an editor: as a process with its standard streams, controlled by the
// client of the ACP library.

import type { ChildProcess } from "node:child_process";
import { Readable, Transform, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";
import { makeHome, startGateway } from "../../cli/kit.ts";
import { ACP_AGENT } from "../../kit/acp-agent.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { launch } from "../../kit/process/fleet.ts";

export interface Editor {
  readonly agent: acp.ClientContext;
  readonly child: ChildProcess;
  readonly updates: acp.SessionUpdate[];
  readonly lines: string[];
  readonly exited: Promise<number | null>;
  stderr(): string;
  /** Opens a session. `clientCapabilities`: those of the editor. */
  open(clientCapabilities?: object): Promise<string>;
  prompt(sessionId: string, text: string): Promise<string>;
  /** Returns the texts of the agent's messages, one entry for each message. */
  texts(): string[];
  /** Resolves when a matching update arrives. */
  saw(fits: (update: acp.SessionUpdate) => boolean): Promise<acp.SessionUpdate>;
}

/** Answers a permission request. `withdrawn` is aborted when the request is cancelled. */
export type AnswerPermission = (
  request: acp.RequestPermissionRequest,
  withdrawn: AbortSignal,
) => acp.RequestPermissionResponse | Promise<acp.RequestPermissionResponse>;

/** `answer`: without it, the editor knows no permission requests. */
export async function openEditor(
  home: string,
  args: readonly string[] = [],
  answer?: AnswerPermission,
): Promise<Editor> {
  const child = launch(home, ["acp", ...args]);
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  cleanup(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const lines: string[] = [];
  const tap = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      lines.push(...chunk.toString().split("\n").filter(Boolean));
      done(null, chunk);
    },
  });
  const updates: acp.SessionUpdate[] = [];
  const watchers: (() => void)[] = [];
  const client = acp.client({ name: "editor" }).onNotification("session/update", ({ params }) => {
    updates.push(params.update);
    for (const watcher of watchers.splice(0)) watcher();
  });
  if (answer !== undefined)
    client.onRequest("session/request_permission", ({ params, signal }) => answer(params, signal));
  const connection = client.connect(
    acp.ndJsonStream(
      Writable.toWeb(child.stdin as Writable) as WritableStream<Uint8Array>,
      Readable.toWeb((child.stdout as Readable).pipe(tap)) as ReadableStream<Uint8Array>,
    ),
  );
  cleanup(() => connection.close());
  const { agent } = connection;
  return {
    ...{ agent, child, updates, lines, exited, stderr: () => stderr },
    async open(clientCapabilities = {}) {
      const clientInfo = { name: "ed", version: "1" };
      await agent.request("initialize", { protocolVersion: 1, clientInfo, clientCapabilities });
      return (await agent.request("session/new", { cwd: "/tmp", mcpServers: [] })).sessionId;
    },
    async prompt(sessionId, text) {
      const answer = await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
      return answer.stopReason;
    },
    texts() {
      const messages = new Map<string, string>();
      for (const update of updates) {
        if (update.sessionUpdate !== "agent_message_chunk" || update.content.type !== "text") continue;
        const id = update.messageId ?? "";
        messages.set(id, (messages.get(id) ?? "") + update.content.text);
      }
      return [...messages.values()];
    },
    async saw(fits) {
      for (;;) {
        const found = updates.find(fits);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => watchers.push(resolve));
      }
    },
  };
}

/**
 * Makes a home folder with two agents: `main` is a program that the tests control, `research` uses the
 * offline model.
 */
export async function makeStage(more: Record<string, unknown> = {}) {
  const runtime = { type: "acp", command: ACP_AGENT, ...more };
  const { home } = await makeHome({ agents: { list: [{ id: "main", runtime }, { id: "research" }] } });
  return { home, gateway: await startGateway(home) };
}
