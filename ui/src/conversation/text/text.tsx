// Shows long text: markdown, plain text and JSON. A very long text is cut, because it would slow the page
// down.

import { Button } from "../../parts/button.tsx";
import "./text.css";
import type { Signal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { head } from "../../../../src/core/text/cut.ts";
import { safeText } from "../../../../src/core/text/safe-text.ts";
import { size } from "../../parts/format.ts";
import { Copy } from "./copy.tsx";
import { makeGrowing, markdown } from "./markdown.ts";

/** Maximum number of characters of a message that are shown at first. Each "Show more" adds as many. */
const TEXT_STEP_CHARS = 40_000;
/** Characters shown of a streaming text, because to lay out millions would block the page. */
const STREAMED_MAX_CHARS = 200_000;
/** Maximum number of characters of arguments and results that are shown at first. */
const CODE_FIRST_CHARS = 2_000;
const CODE_STEP_CHARS = 100_000;

function More({ left, onMore }: { left: number; onMore: () => void }) {
  return <Button text={`Show more (${size(left)} left)`} class="quiet" onClick={onMore} />;
}

export function Prose({ text }: { text: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState(TEXT_STEP_CHARS);
  const left = text.length - shown;
  useLayoutEffect(() => {
    box.current?.replaceChildren(markdown(left > 0 ? head(text, shown) : text));
  }, [text, shown]);
  return (
    <>
      <div ref={box} class="prose" dir="auto" />
      {left > 0 && <More left={left} onMore={() => setShown(shown + TEXT_STEP_CHARS)} />}
    </>
  );
}

export function GrowingProse({ text }: { text: Signal<string> }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (box.current === null) return;
    const show = makeGrowing(box.current);
    return text.subscribe((value) => show(head(value, STREAMED_MAX_CHARS)));
  }, [text]);
  return <div ref={box} class="prose" dir="auto" />;
}

/** Makes a scrolling box reachable by keyboard. */
export const scrolls = (name: string) => ({ tabIndex: 0, role: "group", "aria-label": name }) as const;

/** Shows arguments, results and other text of programs, unchanged. */
export function Code({ text, name }: { text: string; name: string }) {
  const [shown, setShown] = useState(CODE_FIRST_CHARS);
  const left = text.length - shown;
  return (
    <>
      <div class="sunken code-text" {...scrolls(name)}>
        <Copy text={() => text} name={name.toLowerCase()} />
        <pre class="raw">{safeText(head(text, shown))}</pre>
      </div>
      {left > 0 && <More left={left} onMore={() => setShown(shown + CODE_STEP_CHARS)} />}
    </>
  );
}
