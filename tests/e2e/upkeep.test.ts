// The upkeep of an installation with a real process: the doctor.

import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import type { DoctorFinding } from "../../src/contract/methods/upkeep.ts";
import { launch } from "../kit/process/fleet.ts";
import { startProcess } from "../kit/process/gateway-process.ts";

/** Returns the findings that the command prints for this home folder. */
async function printed(home: string, url: string): Promise<DoctorFinding[]> {
  const child = launch(home, ["--json", "--url", url, "doctor", "--offline"]);
  const [out] = await Promise.all([text(child.stdout ?? process.stdin), once(child, "exit")]);
  return JSON.parse(out).findings;
}

test("the method `doctor` returns what the command prints", async () => {
  const servers = { notes: { command: "no-such-program" } };
  const gateway = await startProcess({ config: { tools: { mcp: { servers } } } });
  const client = await gateway.connect();
  const report = await client.request("doctor", { offline: true });
  const same = ({ name, level, text: words, mend }: DoctorFinding) =>
    // Figures of the moment, such as the free space, change between both runs.
    ({ name, level, text: words.replaceAll(/\d+(\.\d+)?/g, "#"), mend });
  expect(report.findings.map(same)).toEqual((await printed(gateway.home, gateway.url)).map(same));
  expect(report.findings.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      "node",
      "config",
      "store",
      "token",
      "disk",
      "models",
      "exec",
      "outside",
      "gateway",
    ]),
  );
  const all = await client.request("doctor", {});
  expect(all.ok).toBe(false);
  expect(all.findings.find(({ name }) => name === "mcp")).toMatchObject({ level: "problem" });
});
