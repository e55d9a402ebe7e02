// Collects the answer of an agent elsewhere from the events of its task: the text so far, and the end.

import type { StreamResponse } from "@a2a-js/sdk";
import { type Artifact, type Message, type Part, type Task, TaskState } from "@a2a-js/sdk";
import { fieldsOf } from "../../../core/json.ts";
import { type Usage, ZERO_USAGE } from "../../../core/shapes/message.ts";
import type { TextDelta } from "../../../core/text/text-delta.ts";
import { LABELS_FIELD, USAGE_FIELD } from "../fields.ts";

/** API name in the messages of agents elsewhere. */
export const A2A_API = "a2a";
const BREAK = "\n\n";
/** Maximum bytes of a file, and maximum number of files, that are kept of an answer. */
const FILE_MAX_BYTES = 10 * 1024 * 1024;
const FILES_MAX = 10;
/** Maximum number of tokens of one kind. Higher numbers are mistakes. */
const TOKENS_MAX = 1_000_000_000;
/** Maximum bytes of all files of an answer. */
const ALL_MAX_BYTES = 20 * 1024 * 1024;
const WORKING: readonly TaskState[] = [
  TaskState.TASK_STATE_UNSPECIFIED,
  TaskState.TASK_STATE_SUBMITTED,
  TaskState.TASK_STATE_WORKING,
  TaskState.UNRECOGNIZED,
];
/** States in which the agent waits for another message. Its question is the answer of the run. */
const ASKING: readonly TaskState[] = [
  TaskState.TASK_STATE_INPUT_REQUIRED,
  TaskState.TASK_STATE_AUTH_REQUIRED,
];
const FAILED: Readonly<Partial<Record<TaskState, string>>> = {
  [TaskState.TASK_STATE_FAILED]: "it failed",
  [TaskState.TASK_STATE_CANCELED]: "it was cancelled there",
  [TaskState.TASK_STATE_REJECTED]: "it refused the message",
};

export interface RemoteFile {
  readonly name: string;
  /** Absent: the agent named an address, which is not fetched, or the file is beyond a limit. */
  readonly content?: Uint8Array;
}

export type RemoteEnd =
  | {
      readonly kind: "answer";
      readonly text: string;
      readonly isAsking: boolean;
      readonly files: readonly RemoteFile[];
    }
  | { readonly kind: "failed"; readonly why: string };

interface Piece {
  readonly id: string;
  text: string;
}

function textOfParts(parts: readonly Part[]): string {
  return parts
    .map(({ content }) => {
      if (content?.$case === "text") return content.value;
      return content?.$case === "data" ? JSON.stringify(content.value) : "";
    })
    .filter((text) => text !== "")
    .join("\n");
}

function bytesOf(files: readonly RemoteFile[]): number {
  return files.reduce((sum, { content }) => sum + (content?.length ?? 0), 0);
}

/** The state of a task, as far as its events were read. */
export class RemoteAnswer {
  readonly #pieces: Piece[] = [];
  /** Length of `text` in characters and in bytes. Counted as it grows, because to join it takes long. */
  #chars = 0;
  #bytes = 0;
  readonly #files = new Map<string, RemoteFile[]>();
  #state: TaskState = TaskState.TASK_STATE_UNSPECIFIED;
  #said = "";
  #saidBytes = 0;
  #direct: { readonly text: string; readonly bytes: number } | undefined;
  taskId: string | undefined;
  contextId: string | undefined;
  /** The facts about the task that the agent reports at its end. */
  #facts: Task["metadata"];

  /** The tokens of the task. */
  get usage(): Usage {
    // Its gateway pays for the tokens that an agent reports, so they cost nothing here.
    const { input, output, cacheRead, cacheWrite } = fieldsOf(this.#facts?.[USAGE_FIELD]);
    const isCount = (one: unknown): one is number =>
      typeof one === "number" && Number.isInteger(one) && one >= 0 && one <= TOKENS_MAX;
    if (!isCount(input) || !isCount(output) || !isCount(cacheRead) || !isCount(cacheWrite)) return ZERO_USAGE;
    const totalTokens = input + output + cacheRead + cacheWrite;
    return { ...ZERO_USAGE, input, output, cacheRead, cacheWrite, totalTokens };
  }

  /** The labels of the answer, as a peer wrote them. */
  get labels(): unknown {
    return this.#facts?.[LABELS_FIELD];
  }

  /** The text of all artifacts. */
  get #text(): string {
    return this.#pieces
      .map(({ text }) => text)
      .filter((text) => text !== "")
      .join(BREAK);
  }

  /** Bytes of the answer so far. At the end: of the answer that `end` returns. */
  get bytes(): number {
    if (this.#direct !== undefined) return this.#direct.bytes;
    if (!this.#answersInStatus) return this.#bytes;
    return this.#bytes + (this.#chars === 0 ? 0 : BREAK.length) + this.#saidBytes;
  }

  /** True if the text of the status is a part of the answer: a question, or all that the agent said. */
  get #answersInStatus(): boolean {
    if (this.#said === "" || WORKING.includes(this.#state)) return false;
    if (FAILED[this.#state] !== undefined) return false;
    return this.#chars === 0 || ASKING.includes(this.#state);
  }

  /** Takes an event. Returns the change of the text, or undefined if it is the same. */
  take({ payload }: StreamResponse): TextDelta | undefined {
    switch (payload?.$case) {
      case "task":
        return this.takeTask(payload.value);
      case "message": {
        const text = textOfParts(payload.value.parts);
        this.#direct = { text, bytes: Buffer.byteLength(text) };
        this.contextId = payload.value.contextId || this.contextId;
        return { offset: 0, text };
      }
      case "statusUpdate":
        this.#facts = payload.value.metadata;
        this.#status(payload.value.status?.state, payload.value.status?.message);
        return undefined;
      case "artifactUpdate":
        return payload.value.artifact === undefined
          ? undefined
          : this.#artifact(payload.value.artifact, payload.value.append);
      default:
        return undefined;
    }
  }

  /** Takes the whole task, which replaces what was read before. */
  takeTask(task: Task): TextDelta | undefined {
    this.taskId = task.id;
    this.contextId = task.contextId;
    this.#facts = task.metadata;
    this.#status(task.status?.state, task.status?.message);
    if (task.artifacts.length === 0) return undefined;
    const before = this.#text;
    this.#pieces.length = 0;
    this.#count("");
    for (const artifact of task.artifacts) this.#artifact(artifact, false);
    return this.#text === before ? undefined : { offset: 0, text: this.#text };
  }

  /** How the task ended, or undefined while it continues. */
  end(): RemoteEnd | undefined {
    if (this.#direct !== undefined)
      return { kind: "answer", text: this.#direct.text, isAsking: false, files: [] };
    if (WORKING.includes(this.#state)) return undefined;
    const why = FAILED[this.#state];
    if (why !== undefined) return { kind: "failed", why: this.#said === "" ? why : `${why}: ${this.#said}` };
    const isAsking = ASKING.includes(this.#state);
    const all = [...this.#files.values()].flat();
    const files = all.map((file, index) => (index < FILES_MAX ? file : { name: file.name }));
    const said = this.#answersInStatus ? this.#said : "";
    const text = [this.#text, said].filter((one) => one !== "").join(BREAK);
    return { kind: "answer", text, isAsking, files };
  }

  #status(state: TaskState | undefined, message: Message | undefined): void {
    if (state !== undefined) this.#state = state;
    if (message === undefined) return;
    this.#said = textOfParts(message.parts);
    this.#saidBytes = Buffer.byteLength(this.#said);
  }

  #artifact({ artifactId, parts }: Artifact, append: boolean): TextDelta | undefined {
    const text = textOfParts(parts);
    this.#files.delete(artifactId);
    const room = ALL_MAX_BYTES - bytesOf([...this.#files.values()].flat());
    const files = parts.flatMap(({ content, filename }): RemoteFile[] => {
      const name = filename === "" ? "file" : filename;
      if (content?.$case === "url") return [{ name }];
      if (content?.$case !== "raw") return [];
      return [content.value.length > FILE_MAX_BYTES ? { name } : { name, content: content.value }];
    });
    // Files beyond the limit are only named, so that an agent can't fill the memory.
    const kept = bytesOf(files) <= room ? files : files.map(({ name }) => ({ name }));
    if (files.length > 0) this.#files.set(artifactId, kept);
    const known = this.#pieces.find(({ id }) => id === artifactId);
    if (known === undefined) return this.#grow(this.#addPiece(artifactId), text);
    if (append && known === this.#pieces.at(-1)) return this.#grow(known, text);
    const before = this.#text;
    known.text = append ? known.text + text : text;
    const after = this.#text;
    this.#count(after);
    if (after === before) return undefined;
    return after.startsWith(before)
      ? { offset: before.length, text: after.slice(before.length) }
      : { offset: 0, text: after };
  }

  #addPiece(id: string): Piece {
    const piece = { id, text: "" };
    this.#pieces.push(piece);
    return piece;
  }

  /** Appends to the last piece. Does not read the earlier text, so that a long answer stays fast. */
  #grow(last: Piece, text: string): TextDelta | undefined {
    if (text === "") return undefined;
    const offset = this.#chars;
    const added = last.text === "" && offset > 0 ? BREAK + text : text;
    last.text += text;
    this.#chars += added.length;
    this.#bytes += Buffer.byteLength(added);
    return { offset, text: added };
  }

  #count(text: string): void {
    this.#chars = text.length;
    this.#bytes = Buffer.byteLength(text);
  }
}
