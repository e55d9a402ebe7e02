// Tool calls in the forms in which servers write them: each is run once, with its own arguments.

import { expect, test } from "vitest";
import { textOf } from "../../../src/core/shapes/message.ts";
import {
  calling,
  DONE,
  delta,
  openRaw,
  callPiece as piece,
  type RawReply,
  type RawTalk,
  saying,
  stream,
} from "../../kit/dialects/raw.ts";

const END = delta({}, "tool_calls") + DONE;
const L1 = '{"limit":1}';
const L2 = '{"limit":2}';

async function ask(reply: RawReply): Promise<RawTalk & { said: string; error: string }> {
  const house = await openRaw();
  const talk = await house.talk("m", (_, at) => (at === 0 ? reply : saying("done")));
  const { text, error } = await talk.says("go");
  return { ...talk, said: text, error };
}

/** Returns the arguments of the calls in the transcript, and the results of these calls. */
async function callsIn(talk: RawTalk) {
  const messages = await talk.history();
  const calls = messages.flatMap((one) =>
    one.role === "assistant" ? one.content.filter(({ type }) => type === "toolCall") : [],
  );
  const results = messages.flatMap((one) => (one.role === "toolResult" ? [one] : []));
  return { calls: calls.map((one) => ("arguments" in one ? one.arguments : undefined)), results };
}

const STREAMS: Record<string, readonly [string[], number[]]> = {
  "two calls with the same index and two ids": [
    [calling(piece(0, "a1", L1)), calling(piece(0, "a2", L2)), END],
    [1, 2],
  ],
  "two calls with the same index and without ids": [
    [calling(piece(0, undefined, L1)), calling(piece(0, undefined, L2)), END],
    [1, 2],
  ],
  "two calls with the same index, in pieces": [
    [
      ...[calling(piece(0, "a1", "")), calling(piece(0, undefined, L1, false))],
      ...[calling(piece(0, "a2", "")), calling(piece(0, undefined, L2, false)), END],
    ],
    [1, 2],
  ],
  "one call with one id and two indexes": [
    [calling(piece(0, "a1", '{"li')), calling(piece(1, "a1", 'mit":1}', false)), END],
    [1],
  ],
  "a second head on index 0 with its tail on index 1": [
    [calling(piece(0, "a1", L1)), calling(piece(0, "a2", "")), calling(piece(1, undefined, L2, false)), END],
    [1, 2],
  ],
  "whole arguments repeated in the last piece": [
    [
      ...[calling(piece(0, "a1", '{"li')), calling(piece(0, undefined, 'mit":1}', false))],
      ...[calling(piece(0, "a1", L1)), END],
    ],
    [1],
  ],
  "a call without an index": [
    [calling(piece(undefined, "a1", '{"li')), calling(piece(undefined, undefined, 'mit":1}', false)), END],
    [1],
  ],
  "a call without index and id": [
    [
      calling(piece(undefined, undefined, '{"li')),
      calling(piece(undefined, undefined, 'mit":1}', false)),
      END,
    ],
    [1],
  ],
  "two calls without an index": [
    [
      ...[calling(piece(undefined, "a1", "")), calling(piece(undefined, undefined, L1, false))],
      ...[calling(piece(undefined, "a2", "")), calling(piece(undefined, undefined, L2, false)), END],
    ],
    [1, 2],
  ],
  "two calls in one list without indexes": [
    [calling(piece(undefined, "a1", L1), piece(undefined, "a2", L2)), END],
    [1, 2],
  ],
  "two calls whose pieces alternate": [
    [
      ...[calling(piece(0, "a1", '{"li')), calling(piece(1, "a2", '{"li'))],
      ...[
        calling(piece(0, undefined, 'mit":1}', false)),
        calling(piece(1, undefined, 'mit":2}', false)),
        END,
      ],
    ],
    [1, 2],
  ],
  "arguments as an object": [[calling(piece(0, "a1", { limit: 1 })), END], [1]],
  "arguments as an object, without index and id": [
    [calling(piece(undefined, undefined, { limit: 1 })), END],
    [1],
  ],
  "empty ids and names in later pieces": [
    [
      calling(piece(0, "a1", "")),
      delta({ tool_calls: [{ index: 0, id: "", function: { name: "", arguments: '{"limit"' } }] }),
      delta({ tool_calls: [{ index: 0, id: "", function: { name: null, arguments: ":1}" } }] }),
      END,
    ],
    [1],
  ],
};

test.each(Object.entries(STREAMS))(
  "%s: each call runs once with its arguments",
  async (_, [pieces, limits]) => {
    const talk = await ask(stream(...pieces));
    const { calls, results } = await callsIn(talk);
    expect({ said: talk.said, error: talk.error, calls }).toEqual({
      ...{ said: "done", error: "", calls: limits.map((limit) => ({ limit })) },
    });
    expect(results.map(({ isError }) => isError)).toEqual(limits.map(() => false));
  },
);

test.each(["null", null, "", "  "])("a call with the arguments %j runs without arguments", async (given) => {
  const talk = await ask(stream(calling(piece(0, "a1", given)), END));
  const { calls, results } = await callsIn(talk);
  expect({ said: talk.said, calls, failed: results.map(({ isError }) => isError) }).toEqual({
    ...{ said: "done", calls: [{}], failed: [false] },
  });
});

test.each(["[1]", "7", '"limit"', '{"limit":1', ["limit"]])(
  "a call with the arguments %j is refused in words that a model can follow",
  async (given) => {
    const talk = await ask(stream(calling(piece(0, "a1", given)), END));
    const { results } = await callsIn(talk);
    expect(talk.said).toBe("done");
    expect(results.map(({ isError }) => isError)).toEqual([true]);
    expect(results.map(textOf).join()).toMatch(/JSON object/);
  },
);
