// Text of unknown clients cannot leave its line in the log of a real process.

import { expect, test } from "vitest";
import { startProcess } from "../../kit/process/gateway-process.ts";
import { refusingModel } from "./refusing-model.ts";

const EVIL =
  '\n{"level":60,"msg":"FORGED"}\r\u001b[2J\u001b]0;t\u0007\u009b8m\u202e\u2066\u200b\u2028\u0000 end';
/** Characters that end a line, control a terminal, or reorder or hide text. */
const OBEYED = /[\p{Cc}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}/u;

test("a log line is one valid JSON object, for any text of a provider, a client or a web page", async () => {
  const baseUrl = await refusingModel(`no ${EVIL}`, EVIL);
  const models = { providers: { local: { api: "openai-completions", baseUrl, models: [{ id: "m" }] } } };
  const gateway = await startProcess({ config: { models, agents: { defaults: { model: "local/m" } } } });
  const client = await gateway.connect();
  await client.agent({ message: `hello ${EVIL}`, idempotencyKey: "run" }).done;
  await client.call(`no.such${EVIL}`, {}).catch(() => undefined);
  await gateway.end("SIGTERM");
  const lines = gateway.stderr().trimEnd().split("\n");
  expect(gateway.stderr()).toContain("end");
  for (const line of lines) {
    expect(line).not.toMatch(OBEYED);
    expect(JSON.parse(line)).toMatchObject({ level: expect.any(Number), msg: expect.any(String) });
    expect(JSON.parse(line).msg).not.toBe("FORGED");
  }
  expect(lines.filter((line) => line.includes("FORGED"))).not.toEqual([]);
});
