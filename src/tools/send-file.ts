// Implements the tool `send_file`: reads a file of the workspace, as `read` does, and passes it to
// flows/delivery/sent-file.ts.
// SE1: credentials in a text file are redacted, as they are in replies (I14).

import type { ToolResultOf } from "../contract/tools.ts";
import { optional } from "../core/optional.ts";
import { CAPTION_CHARS_MAX, sentNameOf, sentTypeOf } from "../core/sent-file.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Redactor } from "../core/text/redact/redact.ts";
import { type FileSent, fileSentBy, sendFile } from "../flows/delivery/sent-file.ts";
import type { Containable } from "./containment.ts";
import { takeFile } from "./files/files.ts";
import { fileSink } from "./labels/sinks.ts";
import { type CallerContext, type Tool, tool, type WritingContext } from "./tool.ts";

export interface SendFileContext extends CallerContext, WritingContext, Containable {}

const ON_PAGE = "The file is on the page of this session. The session has no chat on a channel.";

function noteOf({ delivery }: FileSent): string | undefined {
  if (delivery === undefined) return ON_PAGE;
  if (delivery.fileId !== undefined) return undefined;
  const { channel } = delivery.route;
  return `The file is on the page. ${channel} can't send it, so its people get a text with name and size.`;
}

/** Returns the tool's result for a file that was sent. */
export function sentResult(sent: FileSent, redacted = false): ToolResultOf<"send_file"> {
  const { id, name, mimeType, bytes } = sent.file;
  const { channel, to } = sent.delivery?.route ?? {};
  const notes = [noteOf(sent), redacted ? "Credentials in the file were redacted." : undefined];
  const note = notes.filter((one) => one !== undefined).join(" ") || undefined;
  return { status: "accepted", fileId: id, name, mimeType, bytes, ...optional({ channel, to, note }) };
}

/** Redacts credentials if the file is text. Returns other files unchanged (SE1). */
export async function withoutCredentials(data: Buffer, redactor: Redactor): Promise<Buffer> {
  if (data.includes(0)) return data;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    return data;
  }
  const masked = await redactor.whole(text);
  return masked === text ? data : Buffer.from(masked);
}

function captionOf(caption = ""): Result<string> {
  if (caption.length <= CAPTION_CHARS_MAX) return ok(caption.trim());
  const error = `caption has ${caption.length} characters; the limit is ${CAPTION_CHARS_MAX}`;
  return fail("too_large", error, { hint: "Put the text into your reply." });
}

export const sendFileTool: Tool<SendFileContext> = tool("send_file", {
  sink: (ctx, { path, caption = "" }) => fileSink(ctx, path, caption),
  async before(ctx, _args, { callId }) {
    const sent = await fileSentBy(ctx.db, { callId, ...optional({ run: ctx.run }) });
    return sent && sentResult(sent);
  },
  async execute(ctx, args, { callId }) {
    const { engine, session, run, wait, settings } = ctx;
    const caption = captionOf(args.caption);
    if (!caption.ok) return caption;
    const taken = await takeFile(ctx, args.path, settings.tools.sendFile.maxBytes);
    if (!taken.ok) return taken;
    const before = Buffer.from(taken.value.content, "base64");
    const data = await withoutCredentials(before, engine.redactor);
    const name = await engine.redactor.whole(sentNameOf(taken.value.path));
    const sent = await sendFile(ctx, {
      ...{ session, callId, name, mimeType: sentTypeOf(name, data), bytes: data.length },
      content: data.toString("base64"),
      caption: await engine.redactor.whole(caption.value),
      ...optional({ run, wait }),
    });
    return sent.ok ? ok(sentResult(sent.value, data !== before)) : sent;
  },
});
