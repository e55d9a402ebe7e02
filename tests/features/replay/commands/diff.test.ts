// parley diff: chains of the gateway and records in files, side by side.

import { expect, test } from "vitest";
import type { ChainDiff } from "../../../../src/features/replay/chain-diff.ts";
import { makeHome, run, startGateway } from "../../../cli/kit.ts";

test("diff aligns the steps of two chains, by ids or by files, and says where they differ", async () => {
  const { home } = await makeHome();
  const gateway = await startGateway(home);
  const recorded = async (message: string, file: string): Promise<string> => {
    await run(home, ["send", "--session", "main", "--wait", "30", message]);
    const { err } = await run(home, ["replay", "--save", file]);
    return /Chain (\S+)/.exec(err)?.[1] ?? "";
  };
  const first = await recorded("say marmalade", "first.json");
  const second = await recorded("say porridge", "second.json");
  const found = await run(home, ["diff", first, "second.json"]);
  expect(found).toMatchObject({ code: 0, err: "" });
  expect(found.out).toMatch(/^ +SESSION +STEP +A +B/);
  expect(found.out).toMatch(/\* +agent:main:main +message +say marmalade +say porridge/);
  expect(found.out).toMatch(/\* +agent:main:main +answer /);
  expect(found.out).toMatch(/ {2}agent:main:main +end +\{"state":"ok"\} +=/);
  expect(found.out).toContain("2 differences");
  await gateway.stop();
  const equal = await run(home, ["diff", "first.json", "first.json"]);
  expect(equal.out).toContain("No difference");
  const { code, out } = await run(home, ["--json", "diff", "first.json", "second.json"]);
  const document = JSON.parse(out) as ChainDiff;
  expect({ code, ...document }).toMatchObject({
    ...{ code: 0, differences: 2, a: { chainId: first, runs: 1, steps: 3 }, b: { chainId: second } },
    steps: [
      { step: "message", same: false, a: { text: "say marmalade" }, b: { text: "say porridge" } },
      { step: "answer", same: false },
      { step: "end", same: true },
    ],
  });
  expect(await run(home, ["diff", "first.json", "gone.json"])).toMatchObject({
    ...{ code: 1, err: expect.stringContaining("gone.json could not be read") },
  });
  expect(await run(home, ["diff", "first.json", second])).toMatchObject({ code: 3 });
});
