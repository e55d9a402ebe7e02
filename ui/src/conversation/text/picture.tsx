// Shows a picture of a message. Its data are read once: when it is drawn, or, if it is large, after a click.
// Pictures are read one at a time and in parts, so that other answers do not have to wait on a slow
// connection.

import { useContext, useRef, useState } from "preact/hooks";
import { optional } from "../../../../src/core/optional.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import { ask, has } from "../../gateway.ts";
import { Button } from "../../parts/button.tsx";
import { Awaited } from "../../parts/failure.tsx";
import { size } from "../../parts/format.ts";
import { useReading } from "../../parts/reading.ts";
import { OpenSession } from "../open-session.ts";

/** Maximum size of a picture that is read when it is drawn. A larger one is read after a click. */
const AT_ONCE_MAX_BYTES = 1_000_000;
/** MIME types that the browser can only draw, as pictures. It never runs the content of such a file. */
const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export interface Data {
  readonly mimeType: string;
  /** Base64. */
  readonly content: string;
}

/** Reads a file whose answers come in parts. `ask` reads the part that begins at the offset. */
export async function readParts(
  ask: (from: { offset?: number }) => Promise<Data & { nextOffset?: number }>,
): Promise<Data> {
  const { mimeType, ...first } = await ask({});
  let { content, nextOffset } = first;
  while (nextOffset !== undefined) {
    const part = await ask({ offset: nextOffset });
    content += part.content;
    nextOffset = part.nextOffset;
  }
  return { mimeType, content };
}

export function isPicture(mimeType: string): boolean {
  return TYPES.includes(mimeType);
}

let last: Promise<unknown> = Promise.resolve();

/** Calls `read` after all earlier reads of pictures have ended. */
function afterOthers<T>(read: () => Promise<T>): Promise<T> {
  const mine = last.then(read, read);
  last = mine;
  return mine;
}

export function LazyPicture(props: { id: string; bytes: number; words: string; read: () => Promise<Data> }) {
  const { id, bytes, words, read } = props;
  const [wanted, setWanted] = useState(bytes <= AT_ONCE_MAX_BYTES);
  const [whole, setWhole] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const known = useRef<Data | undefined>(undefined);
  const { value, ...reading } = useReading(`${id} ${wanted}`, async () => {
    // Without a box, the picture is no longer shown.
    if (wanted) known.current ??= await afterOthers(async () => (box.current ? read() : undefined));
    return known.current;
  });
  const isReady = value !== undefined && isPicture(value.mimeType);
  return (
    <div ref={box} class="picture">
      {!wanted && <Button text={`Show picture, ${words}`} onClick={() => setWanted(true)} />}
      {wanted && !isReady && <Awaited {...reading} words={words} />}
      {isReady && (
        <Button
          text={<img src={`data:${value.mimeType};base64,${value.content}`} alt="" />}
          class="plain"
          aria-expanded={whole}
          aria-label={`Enlarge picture, ${words}`}
          onClick={() => setWhole(!whole)}
        />
      )}
    </div>
  );
}

/** `index`: of the picture in the content of the message. */
export function Picture(props: {
  messageId: string;
  index: number;
  block: { readonly mimeType: string; readonly bytes?: number };
}) {
  const { messageId, index, block } = props;
  const { mimeType, bytes = 0 } = block;
  const { sessionKey, sessionId } = useContext(OpenSession);
  const words = `${safeLine(mimeType)}${bytes > 0 ? `, ${size(bytes)}` : ""}`;
  if (!isPicture(mimeType) || !has("chat.image")) return <span class="chip">{words}</span>;
  const about = { sessionKey, messageId, index, ...optional({ sessionId }) };
  return (
    <LazyPicture
      id={`${sessionKey} ${messageId} ${index}`}
      bytes={bytes}
      words={words}
      read={() => readParts((from) => ask("chat.image", { ...about, ...from }))}
    />
  );
}
