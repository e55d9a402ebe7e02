// Counts the prompt tokens that a caching provider would have in its cache. The provider is the tests' model
// server, which counts the longest common prefix of earlier requests as cached.

import { cachedUsage } from "../tests/kit/model-server/prompt-cache.ts";
import type { ServedRequest } from "../tests/kit/model-server/requests.ts";
import { startModelServer } from "../tests/kit/model-server/server.ts";
import { call, type Step, text } from "../tests/kit/model-server/steps.ts";
import { inFolder } from "./in-folder.ts";
import type { Row } from "./measure.ts";
import { withGateway } from "./with-gateway.ts";

const RUNS = 40;
const WINDOW = 128_000;
/** Makes the transcript grow as fast as in a talk with files, so that it is compacted several times. */
const ANSWER = "The answer names files, reasons and numbers. ".repeat(600);

const isSummaryRequest = ({ lastUserText }: ServedRequest): boolean =>
  lastUserText.startsWith("Condense this conversation");

/** Returns the share of cached tokens in per cent. */
function shareOf(step: Step): number {
  if (step.step !== "usage") return 0;
  const { input, cacheRead } = step.usage;
  return (100 * cacheRead) / (input + cacheRead);
}

/** Each run calls one tool, so it makes two requests. */
export async function promptCache(): Promise<Row[]> {
  const shares = { requests: [] as number[], summaries: [] as number[] };
  const earlier: ServedRequest[] = [];
  const server = await startModelServer((request) => {
    const counted = cachedUsage(earlier, request);
    earlier.push(request);
    // The first request of all fills the empty cache.
    if (earlier.length > 1)
      (isSummaryRequest(request) ? shares.summaries : shares.requests).push(shareOf(counted));
    if (isSummaryRequest(request)) return [text("They talked about files."), counted];
    return [request.toolResults.length === 0 ? call("session_status") : text(ANSWER), counted];
  });
  try {
    const { id, ...provider } = server.provider("anthropic-messages", { contextWindow: WINDOW });
    const settings = {
      models: { providers: { [id]: provider } },
      agents: { defaults: { model: `${id}/test-model` } },
    };
    await inFolder((home) =>
      withGateway(home, settings, async ({ client }) => {
        for (let at = 0; at < RUNS; at += 1) {
          const params = { message: `Question ${at}?`, sessionKey: "main" };
          await (await client.agent({ ...params, idempotencyKey: crypto.randomUUID() })).done;
        }
      }),
    );
  } finally {
    await server.close();
  }
  const name = "prompt tokens in the provider's cache";
  return [
    { name, size: `requests of ${RUNS} runs`, unit: "%", samples: shares.requests, target: "> 90" },
    { name, size: "requests for a summary", unit: "%", samples: shares.summaries, target: "> 90" },
  ];
}
