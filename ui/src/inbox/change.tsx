// Shows the change of an instruction file, line by line.

import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { Name } from "../parts/name.tsx";

const DIFF_CLASSES: Readonly<Record<string, string>> = {
  "+": "tone-good toned",
  "-": "tone-bad toned",
  "@": "soft",
};

export function Change({ item: { title = "", summary, diff = "" } }: { item: AttentionItem }) {
  return (
    <>
      <Name as="p" text={summary} />
      <figure class="stack">
        <figcaption class="soft">
          <Name text={title} />
        </figcaption>
        <pre class="sunken">
          {diff.split("\n").map((line, at) => (
            <bdi key={at} class={DIFF_CLASSES[line.charAt(0)]}>{`${line}\n`}</bdi>
          ))}
        </pre>
      </figure>
      <p class="soft">
        Until you allow it, the text before the change counts. Deny restores that text in the file.
      </p>
    </>
  );
}
