// Shows the files that an agent sent to people: a picture, or a button that downloads the file.
// SF3: no file is opened on the page. A download has a type that no browser runs.

import { useContext } from "preact/hooks";
import { fieldsOf } from "../../../../src/core/json.ts";
import { optional } from "../../../../src/core/optional.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import { ask } from "../../gateway.ts";
import { Button } from "../../parts/button.tsx";
import { size } from "../../parts/format.ts";
import { complain } from "../../parts/notices.tsx";
import type { Step } from "../items.ts";
import { OpenSession } from "../open-session.ts";
import { download } from "../text/download.ts";
import { type Data, isPicture, LazyPicture, readParts } from "../text/picture.tsx";
import { Prose } from "../text/text.tsx";
import { parsed, resultText } from "./calls.ts";

interface SentFile {
  readonly fileId: string;
  readonly name: string;
  readonly mimeType: string;
  readonly bytes: number;
  readonly caption: string;
}

export function sentFilesIn(steps: readonly Step[]): readonly SentFile[] {
  return steps.flatMap((step) => {
    if (step.kind !== "call" || step.result === undefined || step.result.isError) return [];
    if ((step.call?.name ?? step.result.toolName) !== "send_file") return [];
    const { fileId, name, mimeType, bytes } = fieldsOf(parsed(resultText(step.result)));
    const caption = step.call?.arguments.caption;
    if (typeof fileId !== "string") return [];
    const words = { name: String(name), mimeType: String(mimeType), caption: String(caption ?? "") };
    return [{ fileId, bytes: Number(bytes), ...words }];
  });
}

export function SentFileView({ file }: { file: SentFile }) {
  const { fileId, name, mimeType, bytes, caption } = file;
  const { sessionKey, sessionId } = useContext(OpenSession);
  const about = { sessionKey, fileId, ...optional({ sessionId }) };
  const read = (): Promise<Data> => readParts((from) => ask("chat.file", { ...about, ...from }));
  const words = `${safeLine(name)}, ${size(bytes)}`;
  const save = async (): Promise<void> => {
    const { content } = await read();
    const data = Uint8Array.from(atob(content), (char) => char.charCodeAt(0));
    download(name, data, "application/octet-stream");
  };
  return (
    <div class="stack sent-file">
      {isPicture(mimeType) && (
        <LazyPicture id={`${sessionKey} ${fileId}`} bytes={bytes} words={words} read={read} />
      )}
      <Button text={`Download ${words}`} onClick={() => void save().catch(complain)} />
      {caption !== "" && <Prose text={caption} />}
    </div>
  );
}
