// Collects the answer of an agent elsewhere from the events of its task: the text so far, and the end.

import type { StreamResponse } from "@a2a-js/sdk";
import { type Artifact, type Message, type Part, type Task, TaskState } from "@a2a-js/sdk";
import { USAGE_FIELD } from "../../core/a2a.ts";
import { fieldsOf } from "../../core/json.ts";
import { type Usage, ZERO_USAGE } from "../../core/shapes/message.ts";
import type { TextDelta } from "../../core/text/text-delta.ts";

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

/** A file that the agent sent. */
export interface RemoteFile {
  readonly name: string;
  /** Absent: the agent named an address, which is not fetched, or the file is beyond a limit. */
  readonly content?: Uint8Array;
}

/** How a task ended. */
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

/** Returns the tokens that an agent reports. Its gateway pays for them, so they cost nothing here. */
function usageIn(metadata: Task["metadata"]): Usage {
  const { input, output, cacheRead, cacheWrite } = fieldsOf(metadata?.[USAGE_FIELD]);
  const isCount = (one: unknown): one is number =>
    typeof one === "number" && Number.isInteger(one) && one >= 0 && one <= TOKENS_MAX;
  if (!isCount(input) || !isCount(output) || !isCount(cacheRead) || !isCount(cacheWrite)) return ZERO_USAGE;
  const totalTokens = input + output + cacheRead + cacheWrite;
  return { ...ZERO_USAGE, input, output, cacheRead, cacheWrite, totalTokens };
}

function filesIn(parts: readonly Part[]): RemoteFile[] {
  return parts.flatMap(({ content, filename }): RemoteFile[] => {
    const name = filename === "" ? "file" : filename;
    if (content?.$case === "url") return [{ name }];
    if (content?.$case !== "raw") return [];
    return [content.value.length > FILE_MAX_BYTES ? { name } : { name, content: content.value }];
  });
}

function bytesOf(files: readonly RemoteFile[]): number {
  return files.reduce((sum, { content }) => sum + (content?.length ?? 0), 0);
}

/** The state of a task, as far as its events were read. */
export class RemoteAnswer {
  readonly #pieces: Piece[] = [];
  readonly #files = new Map<string, RemoteFile[]>();
  #state: TaskState = TaskState.TASK_STATE_UNSPECIFIED;
  #said = "";
  #direct: string | undefined;
  taskId: string | undefined;
  contextId: string | undefined;
  /** The tokens of the task, as the agent reports them at its end. */
  usage: Usage = ZERO_USAGE;

  /** The text of all artifacts. */
  get text(): string {
    return this.#pieces
      .map(({ text }) => text)
      .filter((text) => text !== "")
      .join(BREAK);
  }

  /** Takes an event. Returns the change of the text, or undefined if it is the same. */
  take({ payload }: StreamResponse): TextDelta | undefined {
    switch (payload?.$case) {
      case "task":
        return this.takeTask(payload.value);
      case "message":
        this.#direct = textOfParts(payload.value.parts);
        this.contextId = payload.value.contextId || this.contextId;
        return { offset: 0, text: this.#direct };
      case "statusUpdate":
        this.usage = usageIn(payload.value.metadata);
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
    this.usage = usageIn(task.metadata);
    this.#status(task.status?.state, task.status?.message);
    if (task.artifacts.length === 0) return undefined;
    const before = this.text;
    this.#pieces.length = 0;
    for (const artifact of task.artifacts) this.#artifact(artifact, false);
    return this.text === before ? undefined : { offset: 0, text: this.text };
  }

  /** How the task ended, or undefined while it continues. */
  end(): RemoteEnd | undefined {
    if (this.#direct !== undefined) return { kind: "answer", text: this.#direct, isAsking: false, files: [] };
    if (WORKING.includes(this.#state)) return undefined;
    const why = FAILED[this.#state];
    if (why !== undefined) return { kind: "failed", why: this.#said === "" ? why : `${why}: ${this.#said}` };
    const isAsking = ASKING.includes(this.#state);
    const all = [...this.#files.values()].flat();
    const files = all.map((file, index) => (index < FILES_MAX ? file : { name: file.name }));
    const said = isAsking || this.text === "" ? this.#said : "";
    const text = [this.text, said].filter((one) => one !== "").join(BREAK);
    return { kind: "answer", text, isAsking, files };
  }

  #status(state: TaskState | undefined, message: Message | undefined): void {
    if (state !== undefined) this.#state = state;
    if (message !== undefined) this.#said = textOfParts(message.parts);
  }

  #artifact({ artifactId, parts }: Artifact, append: boolean): TextDelta | undefined {
    const text = textOfParts(parts);
    this.#files.delete(artifactId);
    const room = ALL_MAX_BYTES - bytesOf([...this.#files.values()].flat());
    const files = filesIn(parts);
    // Files beyond the limit are only named, so that an agent can't fill the memory.
    const kept = bytesOf(files) <= room ? files : files.map(({ name }) => ({ name }));
    if (files.length > 0) this.#files.set(artifactId, kept);
    const known = this.#pieces.find(({ id }) => id === artifactId);
    if (known !== undefined && append && known === this.#pieces.at(-1)) {
      const offset = this.text.length;
      known.text += text;
      return text === "" ? undefined : { offset, text };
    }
    const before = this.text;
    if (known === undefined) this.#pieces.push({ id: artifactId, text });
    else known.text = append ? known.text + text : text;
    const after = this.text;
    if (after === before) return undefined;
    return after.startsWith(before)
      ? { offset: before.length, text: after.slice(before.length) }
      : { offset: 0, text: after };
  }
}
