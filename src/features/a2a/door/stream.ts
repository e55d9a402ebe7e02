// Builds the frames of an A2A stream: the task, the pieces of its answer, its files, and its end.
// AS1: text before a call of a tool is not part of the answer. The first piece after it replaces the text
//      that was sent, and the whole answer follows at the end if the pieces differ from it.

import { type Artifact, StreamResponse, type Task, TaskState, type TaskStatus } from "@a2a-js/sdk";
import type { Failure } from "../../../core/shapes/errors.ts";
import type { StreamShape } from "../../../gateway/http/run-stream.ts";
import { answerArtifact } from "./task.ts";

interface StreamParts {
  /** The task when the stream begins. */
  readonly task: Task;
  /** The task at its end. Available when the stream ends. */
  readonly ended: () => Task | undefined;
  /** Encodes one result for the binding. */
  readonly frame: (result: unknown) => string;
  /** Encodes a failure for the binding. */
  readonly failed: (failure: Failure) => string;
}

type Payload = NonNullable<StreamResponse["payload"]>;

function textIn(artifact: Artifact | undefined): string | undefined {
  const content = artifact?.parts[0]?.content;
  return content?.$case === "text" ? content.value : undefined;
}

export function taskStream({ task, ended, frame, failed }: StreamParts): StreamShape {
  const place = { taskId: task.id, contextId: task.contextId, metadata: undefined };
  let works = task.status?.state === TaskState.TASK_STATE_WORKING;
  let isNew = true;
  const send = (payload: Payload): string => frame(StreamResponse.toJSON({ payload }));
  const tellStatus = (status: TaskStatus | undefined, metadata?: Task["metadata"]): string =>
    send({ $case: "statusUpdate", value: { ...place, status, metadata } });
  const tellArtifact = (artifact: Artifact, append: boolean, lastChunk: boolean): string =>
    send({ $case: "artifactUpdate", value: { ...place, artifact, append, lastChunk } });
  const tellBeginning = (): string => {
    if (works) return "";
    works = true;
    return tellStatus({ state: TaskState.TASK_STATE_WORKING, message: undefined, timestamp: undefined });
  };
  return {
    begin: () => send({ $case: "task", value: task }),
    piece(text) {
      const append = !isNew;
      isNew = false;
      return tellBeginning() + tellArtifact(answerArtifact(task.id, text), append, false);
    },
    restart() {
      isNew = true;
    },
    end(_run, whole) {
      const final = ended();
      const answer = answerArtifact(task.id, "").artifactId;
      const isSent = (one: Artifact): boolean => one.artifactId === answer && !isNew && textIn(one) === whole;
      const rest = (final?.artifacts ?? []).filter((one) => !isSent(one));
      return (
        rest.map((one) => tellArtifact(one, false, true)).join("") +
        tellStatus(final?.status, final?.metadata)
      );
    },
    fail: (failure) => failed(failure),
  };
}
