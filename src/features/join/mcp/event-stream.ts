// Reads server-sent events: converts the bytes of a response to the data of each event. An event that exceeds
// the size limit ends the stream, so that memory is bounded.

/** Size limit of one event. Answers of the gateway are far smaller. */
const EVENT_MAX_CHARS = 64 * 1024 * 1024;

/** Yields the data of each event that has any. Comments, names and ids are skipped. */
export async function* eventData(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  let data: string[] = [];
  for await (const bytes of body) {
    rest += decoder.decode(bytes, { stream: true });
    if (rest.length > EVENT_MAX_CHARS) throw new Error("an event from the gateway is longer than the limit");
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      if (line !== "" || data.length === 0) continue;
      const text = data.join("\n");
      data = [];
      if (text !== "") yield text;
    }
  }
}
