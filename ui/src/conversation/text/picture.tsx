// Shows a picture of a message. The data of a picture is read when the picture is drawn; that of a large one
// after a click.

import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import { ask, has } from "../../gateway.ts";
import { Awaited } from "../../parts/failure.tsx";
import { size } from "../../parts/format.ts";
import { useReading } from "../../parts/reading.ts";

/** The conversation whose messages are drawn. */
export const Shown = createContext<{ readonly sessionKey: string; readonly sessionId?: string | undefined }>({
  sessionKey: "",
});

/** Larger pictures are read only after a click. */
const AT_ONCE_MAX_BYTES = 1_000_000;
/** Types that the browser draws as a picture and nothing else. */
const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

interface PictureProps {
  readonly messageId: string;
  /** The picture's position in the message's content. */
  readonly index: number;
  readonly block: { readonly mimeType: string; readonly bytes?: number };
}

function Read({ messageId, index, words }: PictureProps & { words: string }) {
  const { sessionKey, sessionId } = useContext(Shown);
  const [whole, setWhole] = useState(false);
  const { value, problem, again } = useReading(`${sessionKey} ${messageId} ${index}`, () =>
    ask("chat.image", { sessionKey, messageId, index, ...(sessionId === undefined ? {} : { sessionId }) }),
  );
  if (value === undefined || !TYPES.includes(value.mimeType))
    return <Awaited problem={problem} again={again} words={words} />;
  return (
    <button
      type="button"
      class="quiet"
      aria-expanded={whole}
      aria-label={`Enlarge picture, ${words}`}
      onClick={() => setWhole(!whole)}
    >
      <img src={`data:${value.mimeType};base64,${value.content}`} alt="" />
    </button>
  );
}

export function Picture(props: PictureProps) {
  const { mimeType, bytes = 0 } = props.block;
  const [wanted, setWanted] = useState(bytes <= AT_ONCE_MAX_BYTES);
  const words = `${safeLine(mimeType)}${bytes > 0 ? `, ${size(bytes)}` : ""}`;
  if (!TYPES.includes(mimeType) || !has("chat.image")) return <span class="chip">{words}</span>;
  return (
    <div class="picture">
      {wanted ? (
        <Read {...props} words={words} />
      ) : (
        <button type="button" onClick={() => setWanted(true)}>
          {`Show picture, ${words}`}
        </button>
      )}
    </div>
  );
}
