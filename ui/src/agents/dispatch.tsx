// The field that gives work to any agent: "@research check the release" goes to the main session of the agent
// research, a text without "@" to that of the default agent.
// DS1: the text stays in the field until the gateway has accepted it, also when the dialog is closed.

import { useLayoutEffect, useRef } from "preact/hooks";
import { draftOf, keepDraft, openToWrite, requestOf } from "../conversation/drafts.ts";
import { ask, defaults } from "../gateway.ts";
import { pressed } from "../keys/table.ts";
import { takeLetters } from "../overlay.ts";
import { Dialog, Form } from "../parts/dialog.tsx";
import { useMenu } from "../parts/listbox.tsx";
import { Name } from "../parts/name.tsx";
import { Agent } from "./agent-name.tsx";
import { agents, mainSessionOf } from "./known.ts";

/** Name of the draft of this field. No session has this key. */
const FIELD = "@";

/** Returns the word after "@" at the start, whether it is still being typed, and the message after it. */
function readText(text: string) {
  const [, word, gap, message] = /^\s*@(\S*)(\s*)([\s\S]*)$/.exec(text) ?? [];
  return { word, isBegun: word !== undefined && gap === "", message: message ?? text };
}

const sameWord = (a: string, b: string): boolean =>
  a.toLowerCase().replaceAll(/\s+/g, "-") === b.toLowerCase();

/** Returns the id of the agent that a text is for. Undefined: no agent has this name. */
function agentFor(word: string | undefined): string | undefined {
  if (word === undefined) return defaults.value?.defaultAgentId;
  const all = agents.value?.agents ?? [];
  return (all.find(({ id }) => sameWord(id, word)) ?? all.find(({ name = "" }) => sameWord(name, word)))?.id;
}

/** Returns the agents whose names begin with a word. */
function agentsFrom(word: string) {
  const begins = (name: string): boolean => name.toLowerCase().startsWith(word.toLowerCase());
  const all = agents.value?.agents ?? [];
  return all.filter(({ id, name = "" }) => begins(id) || name.split(/\s+/).some(begins));
}

export function Dispatch({ onClose }: { onClose: () => void }) {
  const text = draftOf(FIELD);
  const write = (next: string): void => keepDraft(FIELD, next);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const letters = takeLetters();
    if (text === "") write(letters);
    field.current?.setSelectionRange(text.length, text.length);
  }, []);
  const { word, isBegun, message } = readText(text);
  const agentId = agentFor(word);
  const options = isBegun ? agentsFrom(word ?? "") : [];
  const menu = useMenu({
    ...{ label: "Agents", class: "palette", options },
    draw: ({ id }) => (
      <>
        <span class="row">
          <Agent id={id} />
        </span>
        <Name as="span" class="soft" text={`@${id}`} />
      </>
    ),
    onTake: ({ id }) => {
      write(`@${id} `);
      field.current?.focus();
    },
  });
  const send = async (): Promise<void> => {
    if (agentId === undefined) throw new Error(`There is no agent ${word}.`);
    const key = word === undefined ? defaults.value?.mainSessionKey : mainSessionOf(agentId);
    if (key === undefined || message.trim() === "") return field.current?.focus();
    await ask("chat.send", { sessionKey: key, message, idempotencyKey: requestOf(FIELD) });
    write("");
    onClose();
    openToWrite(key);
  };
  return (
    <Dialog title="Ask an agent" class="dispatch" onClose={onClose}>
      <Form action="Send" onSubmit={send} onClose={onClose}>
        <textarea
          ref={field}
          rows={3}
          dir="auto"
          aria-label="Work for an agent"
          {...menu.field}
          placeholder="@agent, then what it is to do"
          value={text}
          onInput={(event) => write(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (menu.press(event) || pressed("composer", event) !== "send") return;
            event.preventDefault();
            event.currentTarget.form?.requestSubmit();
          }}
        />
        {menu.menu}
        {options.length === 0 && (
          <p class="bar soft" role="status">
            {agentId === undefined ? (
              <Name text={`No agent is called ${word}.`} />
            ) : (
              <>
                <span>Goes to</span> <Agent id={agentId} />
              </>
            )}
          </p>
        )}
      </Form>
    </Dialog>
  );
}
