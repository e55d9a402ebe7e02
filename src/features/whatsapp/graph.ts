// Sends one request to the platform's Graph API or to its media hosts (HX1 to HX4 of exchange.ts).

import { createHash } from "node:crypto";
import type { OutgoingFile } from "../../channels/channel.ts";
import { type Exchange, type Exchanged, exchange } from "../../channels/exchange.ts";
import type { World } from "../../world.ts";

export type GraphRequest = Pick<Exchange, "purpose" | "configured" | "timeoutMs" | "bytesMax" | "stop"> & {
  readonly url: URL;
  readonly token: string;
  /** Body for a POST request. If absent, the request is a GET. */
  readonly body?: object;
  /** A file to send instead of a body, with the other fields of its form. */
  readonly form?: { readonly file: OutgoingFile; readonly fields: Readonly<Record<string, string>> };
};

/** Returns the body of a form, and its header. The name of the file contains no quotation marks. */
function encodeForm({ file, fields }: NonNullable<GraphRequest["form"]>) {
  const boundary = `parley-${createHash("sha256").update(file.data).digest("hex").slice(0, 40)}`;
  const heads = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const head =
    `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${file.name}"\r\n` +
    `content-type: ${file.mimeType}\r\n\r\n`;
  const body = Buffer.concat([
    Buffer.from(`${heads.join("")}${head}`),
    file.data,
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]);
  return { body, headers: { "content-type": `multipart/form-data; boundary=${boundary}` } };
}

/** Makes one request. Never throws. */
export function askGraph(
  { token, body, form, ...asked }: GraphRequest,
  { clock }: World,
): Promise<Exchanged> {
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const { headers, ...sent } = form === undefined ? { ...text, headers: {} } : encodeForm(form);
  const all = { authorization: `Bearer ${token}`, ...headers };
  return exchange({ ...asked, ...sent, headers: all, server: asked.url.host }, clock);
}
