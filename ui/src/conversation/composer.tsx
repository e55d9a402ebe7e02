// The composer of a session: the text field, Send, Stop, model and thinking level. The text stays in the
// field until the gateway has accepted it. If the gateway refuses the text, the error is shown. After a lost
// connection the client sends the message again with the same idempotency key, so it is accepted only once.
// Actions that the token's scopes do not allow are not shown.
// CM1: the menu of commands is open while the message is the beginning of a command's name. It lists those
//      that the gateway knows and the token may give.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { optional } from "../../../src/core/optional.ts";
import { COMMANDS, findCommand, rightsFor } from "../../../src/core/rules/command.ts";
import { THINKING_LEVELS } from "../../../src/core/shapes/settings/settings.ts";
import { isElsewhere } from "../agents/known.ts";
import { useModelRefs } from "../agents/model-refs.ts";
import { ask, coversAll, has, may, wordsOf } from "../gateway.ts";
import { pressed } from "../keys/table.ts";
import { Button } from "../parts/button.tsx";
import { useMenu } from "../parts/listbox.tsx";
import { Lines } from "../parts/name.tsx";
import { complain } from "../parts/notices.tsx";
import { Select } from "../parts/select.tsx";
import { isProgram } from "../sessions/own-name.ts";
import { ActButton } from "./act-button.tsx";
import { begunRequest, draftOf, focusedComposer, keepDraft, requestOf } from "./drafts.ts";
import { addPictures, keepPictures, PickPictures, Pictures, picturesOf } from "./pictures.tsx";
import { currentRun, type Thread } from "./thread.ts";

type Row = NonNullable<Thread["now"]>["session"];

/** Returns true on a touch device, where the Enter key must add a line instead of sending. */
function isTouch(): boolean {
  return window.matchMedia("(pointer: coarse)").matches;
}

const LEVELS = THINKING_LEVELS.map((level) => [level, `Thinking: ${level}`] as const);

type Change = { model?: string | null; thinkingLevel?: string | null };

function Choices({ thread, row }: { thread: Thread; row: Row }) {
  const [, redraw] = useState(0);
  const patch = (change: Change): void => {
    ask("sessions.patch", { key: row.key, ...change }).catch((error: unknown) => {
      complain(error);
      // Redraws the choice, so that it shows the saved value again.
      redraw((count) => count + 1);
    });
  };
  const current = `${row.modelProvider}/${row.model}`;
  const names = useModelRefs();
  const listed = names.includes(current) ? names : [current, ...names];
  return (
    <div class="row choices">
      <Select
        aria-label="Model"
        value={current}
        options={[["", "Model: agent's default"], ...listed]}
        onPick={(model) => patch({ model: model || null })}
      />
      <Select
        aria-label="Thinking"
        value={row.thinkingLevel ?? ""}
        options={[
          ["", `Thinking: ${row.thinkingLevel === undefined ? thread.thinkingLevel : "agent's default"}`],
          ...LEVELS,
        ]}
        onPick={(level) => patch({ thinkingLevel: level || null })}
      />
    </div>
  );
}

/** Owns the sending of the unsent text and pictures. */
function useSending(thread: Thread, onSent: () => void) {
  const { sessionKey, runs, now } = thread;
  const text = draftOf(sessionKey);
  const pictures = picturesOf(sessionKey);
  const [sending, setSending] = useState(false);
  const [refusal, setRefusal] = useState<{ of: string; words: string }>();
  const problem = refusal?.of === text ? refusal.words : undefined;
  const refuse = (words: string): void => setRefusal({ of: text, words });
  const fail = (error: unknown): void => refuse(wordsOf(error));
  const write = (value: string): void => keepDraft(sessionKey, value);
  const clear = (): void => {
    write("");
    // Keep only the pictures that were added while the message was being sent.
    const added = picturesOf(sessionKey).filter((one) => !pictures.includes(one));
    keepPictures(sessionKey, added);
  };
  const canSend = !sending && (text.trim() !== "" || pictures.length > 0);
  const unknown = unknownCommand(text);
  // The message has arrived, though its answer was lost.
  const begun = begunRequest(sessionKey);
  const hasArrived = begun in runs || now?.queue.some(({ runId }) => runId === begun) === true;
  useEffect(() => {
    if (hasArrived && !sending) clear();
  }, [hasArrived, sending]);
  const send = async (steer = false): Promise<void> => {
    if (!canSend) return;
    if (unknown !== undefined && problem !== unknown) return refuse(unknown);
    setSending(true);
    setRefusal(undefined);
    try {
      const attachments = pictures.map(({ mimeType, content }) => ({ mimeType, content }));
      await ask("chat.send", {
        sessionKey,
        message: text,
        idempotencyKey: requestOf(sessionKey),
        ...(steer ? { steer } : {}),
        ...(attachments.length === 0 ? {} : { attachments }),
      });
      clear();
      const [runId, run] = currentRun(thread) ?? [];
      // The run reads the message instead of making the calls before which it stopped.
      if (steer && runId !== undefined && run?.hold !== undefined)
        await ask("runs.release", { runId, skip: true });
      onSent();
    } catch (error) {
      fail(error);
    }
    setSending(false);
  };
  const add = (files: readonly File[]): void => {
    setRefusal(undefined);
    addPictures(sessionKey, files).catch(fail);
  };
  return { text, write, send, sending, problem, canSend, add };
}

function Buttons(props: {
  thread: Thread;
  queuedRuns: number;
  canSend: boolean;
  onSend: (steer?: boolean) => void;
  sending: boolean;
}) {
  const { thread, queuedRuns, canSend, onSend, sending } = props;
  const [runId, { hold } = {}] = currentRun(thread) ?? [];
  const busy = runId !== undefined || queuedRuns > 0;
  const isOurs = runId !== undefined && !isElsewhere(thread.sessionKey);
  return (
    <div class="bar end">
      {queuedRuns > 0 && <span class="soft small queue-note">{`${queuedRuns} queued`}</span>}
      {busy && (
        <ActButton
          text="Stop"
          of={runId ?? `${queuedRuns} queued`}
          data-act="Stop the run"
          act={() => ask("chat.abort", { sessionKey: thread.sessionKey, ...optional({ runId }) })}
        />
      )}
      {isOurs && has("runs.hold") && (
        <ActButton
          text={hold === undefined ? "Hold" : "Release"}
          of={`${runId} ${hold}`}
          data-act={hold === undefined ? "Hold the run" : "Release the run"}
          title={hold === undefined ? "The agent stops before its next tool call" : "The agent continues"}
          act={() => ask(hold === undefined ? "runs.hold" : "runs.release", { runId })}
        />
      )}
      {isOurs && (
        <Button
          text="Steer"
          disabled={!canSend}
          title={
            hold === undefined
              ? "The agent reads the message before its next step"
              : "The agent continues with the message, and leaves out the calls that it wanted to make"
          }
          onClick={() => onSend(true)}
        />
      )}
      <Button
        text={sending ? "Sending…" : busy ? "Queue" : "Send"}
        class="primary"
        disabled={!canSend}
        onClick={() => onSend()}
      />
    </div>
  );
}

/** Takes files that are dropped on any part of the conversation. */
function useDrop(field: RefObject<HTMLElement | null>, add: (files: readonly File[]) => void): void {
  useEffect(() => {
    const take = (event: DragEvent): void => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      if (event.type === "drop") add([...event.dataTransfer.files]);
    };
    const area = field.current?.closest<HTMLElement>(".conversation");
    const listening = new AbortController();
    area?.addEventListener("dragover", take, listening);
    area?.addEventListener("drop", take, listening);
    return () => listening.abort();
  });
}

/** Returns a question about a text that begins like a command, but names none. */
function unknownCommand(text: string): string | undefined {
  const [, name] = /^\/([a-z][a-z0-9_-]*)(?:\s|$)/i.exec(text) ?? [];
  if (name === undefined || findCommand(name) !== undefined) return undefined;
  return `There is no command /${name}. Send it again to send it as a message.`;
}

/** Returns the commands that begin with the text. One with exactly this name comes first. */
function commandsFor(text: string): readonly (typeof COMMANDS)[number][] {
  const [, begun] = /^\/([a-z0-9_-]*)$/i.exec(text) ?? [];
  const typed = begun?.toLowerCase();
  if (typed === undefined) return [];
  const fitting = COMMANDS.filter(({ name }) => {
    const { scope, everySession } = rightsFor(name);
    return name.startsWith(typed) && may(scope) && (!everySession || coversAll());
  });
  return fitting.toSorted((a, b) => Number(b.name === typed) - Number(a.name === typed));
}

/** Owns the menu for a text, which `write` replaces by the chosen command. */
function useCommands(text: string, write: (text: string) => void) {
  const [closedFor, setClosedFor] = useState<string>();
  // A closed menu stays closed while the reader continues the same text.
  const isClosed = closedFor !== undefined && text.startsWith(closedFor);
  if (closedFor !== undefined && !isClosed) setClosedFor(undefined);
  return useMenu({
    ...{ label: "Commands", class: "commands", options: isClosed ? [] : commandsFor(text) },
    draw: ({ usage, description }) => (
      <>
        <span class="mono">{usage}</span>
        <span class="soft">{description}</span>
      </>
    ),
    onTake: ({ name, usage }) => write(usage.includes(" ") ? `/${name} ` : `/${name}`),
    onLeave: () => setClosedFor(text),
    isComplete: ({ name }) => text.toLowerCase() === `/${name}`,
  });
}

/** `row`: undefined if the first message will start the session. */
function Field({ thread, row, onSent }: { thread: Thread; row: Row | undefined; onSent: () => void }) {
  const { sessionKey } = thread;
  const { text, write, send, sending, problem, canSend, add } = useSending(thread, onSent);
  const field = useRef<HTMLTextAreaElement>(null);
  const commands = useCommands(text, write);
  useDrop(field, add);
  useEffect(() => {
    const element = field.current;
    if (element === null || CSS.supports("field-sizing", "content")) return;
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight}px`;
  }, [text]);
  useEffect(() => {
    if (focusedComposer.value !== sessionKey) return;
    focusedComposer.value = undefined;
    field.current?.focus();
  }, [focusedComposer.value]);
  const steering = thread.now?.queue.filter(({ steer }) => steer === true).length ?? 0;
  const queuedRuns = (row?.queuedRuns ?? 0) - steering;
  const sendNow = (steer = false): void => {
    void send(steer).then(() => field.current?.focus());
  };
  return (
    <form
      class="bar composer"
      aria-label="Write to this session"
      onSubmit={(event) => {
        event.preventDefault();
        sendNow();
      }}
    >
      {problem !== undefined && <Lines class="composer-problem" role="alert" text={problem} />}
      <Pictures sessionKey={sessionKey} />
      {commands.menu}
      <textarea
        ref={field}
        rows={1}
        dir="auto"
        aria-label="Message"
        {...commands.field}
        placeholder={
          isTouch() ? "Message" : "Message. Enter sends, Shift+Enter adds a line, / lists the commands"
        }
        value={text}
        readOnly={sending}
        onInput={(event) => write(event.currentTarget.value)}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])];
          if (files.length === 0) return;
          event.preventDefault();
          add(files);
        }}
        onKeyDown={(event) => {
          if (commands.press(event) || pressed("composer", event) !== "send" || isTouch()) return;
          event.preventDefault();
          sendNow();
        }}
      />
      <Buttons {...{ thread, canSend, sending }} queuedRuns={queuedRuns} onSend={sendNow} />
      {row !== undefined && !isProgram(row.key) && <Choices thread={thread} row={row} />}
      <PickPictures onFiles={add} />
    </form>
  );
}

/** `onSent`: called when the gateway has accepted a message. */
export function Composer({ thread, onSent }: { thread: Thread; onSent: () => void }) {
  const row = thread.now?.session;
  const isStarted = thread.sessionId !== undefined;
  if ((row === undefined && isStarted) || !may("operator.write")) return null;
  if (row?.archivedAt !== undefined)
    return (
      <div class="row composer">
        <span class="soft">This session is archived and read-only.</span>
        <Button
          text="Restore"
          class="end"
          onClick={() => {
            ask("sessions.patch", { key: row.key, archived: false }).then(onSent, complain);
          }}
        />
      </div>
    );
  return <Field thread={thread} row={row} onSent={onSent} />;
}
