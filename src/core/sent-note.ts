// The form in which the transcript of an external session notes a message that its program has sent.

const NOTE = /^\[to (\S+)\]\n\n/;

export interface SentNote {
  /** Key of the session that got the message. */
  readonly to: string;
  readonly text: string;
}

export const writeSentNote = ({ to, text }: SentNote): string => `[to ${to}]\n\n${text}`;

export function readSentNote(text: string): SentNote | undefined {
  const [line, to] = NOTE.exec(text) ?? [];
  return line === undefined || to === undefined ? undefined : { to, text: text.slice(line.length) };
}
