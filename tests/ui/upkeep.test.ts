// The doctor in a real browser with a real gateway.

import { expect, test } from "vitest";
import type { DoctorFinding } from "../../src/contract/methods/upkeep.ts";
import { fail, ok, type Result } from "../../src/core/shapes/errors.ts";
import type { TokenSettings } from "../../src/core/shapes/settings/settings.ts";
import { openHouse, TOKEN } from "../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../kit/browser.ts";

const TOKENS: TokenSettings[] = [
  { token: "writer-token", role: "operator", scopes: ["operator.write"] },
  { token: "partial-token", role: "operator", scopes: ["operator.admin"], sessions: ["agent:main:*"] },
];
const FINDINGS: DoctorFinding[] = [
  { name: "node", level: "ok", text: "Node 24" },
  { name: "disk", level: "warning", text: "600 MB free in /srv/parley", mend: "Free some space." },
  {
    name: "permissions",
    level: "problem",
    text: `/srv/${"very-long-name/".repeat(20)}token has mode 0644\nsecond line\u202e`,
    mend: "chmod 600 it",
  },
];

describeInBrowser("the doctor", () => {
  test("findings are grouped, problems first, each with its remedy; a failed run can be repeated", async () => {
    const asked: boolean[] = [];
    const held: PromiseWithResolvers<Result<DoctorFinding[]>>[] = [];
    const doctor = (offline: boolean) => {
      asked.push(offline);
      const answer = Promise.withResolvers<Result<DoctorFinding[]>>();
      held.push(answer);
      return answer.promise;
    };
    const house = await openHouse({ doctor });
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/doctor", viewport: PHONE });
    const button = page.getByRole("button", { name: "Run checks" });
    await page.getByText("No checks were run").waitFor();
    await button.click();
    await page.getByText("Checking…").waitFor();
    await button.click({ force: true });
    held[0]?.resolve(fail("exec_failed", "the doctor gave no result: the disk is full"));
    await page.getByRole("alert").getByText("the disk is full").waitFor();
    await page.getByRole("checkbox", { name: /^Contact models/ }).check();
    await page.getByRole("button", { name: "Retry" }).click();
    await expect.poll(() => held.length).toBe(2);
    held[1]?.resolve(ok(FINDINGS));
    await page.getByText("1 problem, 1 warning.").waitFor();
    expect(asked).toEqual([true, false]);
    const titles = await page.locator(".tab-body h3").allInnerTexts();
    expect(titles).toEqual(["Problems", "Warnings", "In order"]);
    const problem = page.getByRole("region", { name: "Problems" }).getByRole("listitem");
    expect(await problem.innerText()).toMatch(
      /^permissions\s+[\s\S]*mode 0644\nsecond line.*\s+chmod 600 it$/,
    );
    expect(await problem.innerText()).not.toContain("\u202e");
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("only a token with operator.admin for every session is offered the doctor", async () => {
    const house = await openHouse({ gateway: { tokens: TOKENS } });
    for (const { token } of TOKENS) {
      const { page } = await visit(house.http, { token, at: "operations/status" });
      const tabs = page.getByRole("navigation", { name: "Operations" }).getByRole("link");
      await expect.poll(() => tabs.allInnerTexts()).toContain("Status");
      expect(await tabs.allInnerTexts()).not.toContain("Doctor");
    }
  });
});
