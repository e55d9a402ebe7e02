// Labels of replayed and compared chains: a replay has those of its record, and a comparison shows the others.

import { expect, test } from "vitest";
import { NO_VARIATION } from "../../../src/core/shapes/record/variation.ts";
import { diffChains } from "../../../src/features/replay/chain-diff.ts";
import { replayChain, replayIn } from "../../../src/features/replay/play/play.ts";
import { openHouse } from "../../gateway/kit.ts";
import { cleanup, quietWorld } from "../../kit/engine/engine.ts";
import { serveHttp } from "../../kit/loopback.ts";
import { startModelServer } from "../../kit/model-server/server.ts";
import { doing, inTurn, sending, talkingModel } from "../../kit/talking-model.ts";
import { recordOf } from "./record-of.ts";

const RESEARCH = "agent:research:main";

/** Records a chain that fetches a page and sends a message, and one that only sends it. */
async function recordBoth() {
  const server = await serveHttp((_, response) => void response.end("a page"));
  cleanup(() => server.close());
  const host = `127.0.0.1:${server.port}`;
  const tools = {
    fetch: { allowHosts: [host] },
    ...{ visibility: "all" as const, agentToAgent: { enabled: true, allow: [] } },
  };
  const house = await openHouse({ model: talkingModel(), choices: { tools } });
  const send = doing(sending(RESEARCH, "what is new?"));
  const page = doing({ name: "fetch", arguments: { url: `http://${host}/page` } });
  const plain = await recordOf(house, send);
  const fetching = await recordOf(house, inTurn(page, send));
  return { plain, fetching, source: `web ${host}` };
}

test("LS2: a comparison shows the sources that runs of one chain have only, each once with its sessions", async () => {
  const { plain, fetching, source } = await recordBoth();
  const [first] = fetching.runs;
  const { labels } = diffChains(plain, fetching);
  expect(labels).toEqual([
    { side: "b", label: "outside", source, sessions: ["agent:main:main", RESEARCH], runId: first?.runId },
  ]);
  expect(diffChains(fetching, plain).labels.map(({ side }) => side)).toEqual(["a"]);
  expect(diffChains(fetching, fetching).labels).toEqual([]);
});

test("a replay has the labels of its record, although its tools do not run", async () => {
  const { fetching } = await recordBoth();
  const replayed = await replayChain(fetching);
  expect(replayed).toMatchObject({ ok: true, value: { labels: [] } });
  expect(replayed.ok && replayed.value.difference).toBeUndefined();
});

test("a replay whose model does not fetch lacks the labels of the page", async () => {
  const { fetching, source } = await recordBoth();
  const server = await startModelServer(() => "I do not fetch");
  cleanup(() => server.close());
  const replayed = await replayIn(quietWorld())(fetching, {
    variation: { ...NO_VARIATION, models: { main: "openai/test-model" } },
    providers: [server.provider("openai-completions")],
  });
  const labels = replayed.ok ? replayed.value.labels : [];
  // The model does not send, either.
  expect(labels.map(({ side, label, source, sessions }) => [side, label, source, sessions])).toEqual([
    ["a", "outside", source, ["agent:main:main", RESEARCH]],
    ["a", "private", `session ${RESEARCH}`, [RESEARCH]],
  ]);
});
