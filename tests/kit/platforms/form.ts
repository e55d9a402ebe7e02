// Reads the body of a request that sends a form with files.

import type { IncomingMessage } from "node:http";

interface FormPart {
  readonly field: string;
  readonly bytes: Buffer;
  /** Name of the file. Absent: the part is a text. */
  readonly fileName?: string;
}

/** Returns the parts of a form, or undefined if the body is not a form. */
export function formParts(request: IncomingMessage, body: Buffer): readonly FormPart[] | undefined {
  const [, boundary] = /boundary=(.+)$/.exec(request.headers["content-type"] ?? "") ?? [];
  if (boundary === undefined) return undefined;
  const parts = body.toString("latin1").split(`--${boundary}`).slice(1, -1);
  return parts.map((part) => {
    const [head = "", ...rest] = part.slice(2, -2).split("\r\n\r\n");
    const [, field = "", , quoted, plain] = /name="([^"]*)"(; ?filename=(?:"(.*?)"|(.*)))?/.exec(head) ?? [];
    const bytes = Buffer.from(rest.join("\r\n\r\n"), "latin1");
    const name = quoted ?? plain;
    if (name === undefined) return { field, bytes };
    return { field, bytes, fileName: Buffer.from(name, "latin1").toString("utf8") };
  });
}
