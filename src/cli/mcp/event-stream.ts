// Owns reading server-sent events: from the bytes of a response to the data of each event.
// ES1: an event over the limit ends the stream; nothing grows without end.

/** Of one event: an answer of the gateway is far smaller. */
const EVENT_MAX_CHARS = 64 * 1024 * 1024;

/** The data of each event, as it comes. Comments, names and ids are left out. */
export async function* eventData(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  let data: string[] = [];
  for await (const bytes of body) {
    rest += decoder.decode(bytes, { stream: true });
    if (rest.length > EVENT_MAX_CHARS) throw new Error("an event of the gateway is too long");
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      if (line !== "" || data.length === 0) continue;
      yield data.join("\n");
      data = [];
    }
  }
}
