// The doctor, the backups, MCP servers and ACP agents in a real browser with a real gateway.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PayloadOf } from "../../src/contract/methods.ts";
import { fail, ok, type Result } from "../../src/core/shapes/errors.ts";
import type { Moved } from "../../src/store/transfer/transfer.ts";
import { openHouse, TOKEN } from "../gateway/kit.ts";
import { accessibilityProblems, CUT, describeInBrowser, PHONE, sideways, visit } from "../kit/browser.ts";
import { agentSettings } from "../tools/app.ts";
import { badServer, httpServer, mcpWith, openWitness } from "../tools/mcp-kit.ts";

type DoctorFinding = PayloadOf<"doctor">["findings"][number];

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
    await expect.poll(() => held.length).toBe(1);
    held[0]?.resolve(fail("exec_failed", "the disk is full"));
    await page.getByRole("alert").getByText("the disk is full").waitFor();
    await page.getByRole("checkbox", { name: /^Contact models/ }).check();
    await page.getByRole("button", { name: "Retry" }).click();
    await expect.poll(() => held.length).toBe(2);
    held[1]?.resolve(ok(FINDINGS));
    await page.getByText("1 problem, 1 warning.").waitFor();
    expect(asked).toEqual([true, false]);
    const titles = await page.locator(".tab-body h2").allInnerTexts();
    expect(titles).toEqual(["Doctor", "Problems", "Warnings", "In order"]);
    const problem = page.getByRole("region", { name: "Problems" }).getByRole("listitem");
    await expect
      .poll(() => problem.innerText())
      .toMatch(/^permissions\s+[\s\S]*mode 0644\nsecond line.*\s+chmod 600 it$/);
    await expect.poll(() => problem.innerText()).not.toContain("\u202e");
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("a run continues while another view is shown, and its findings stay until the reader signs out", async () => {
    const answer = Promise.withResolvers<Result<DoctorFinding[]>>();
    let asked = 0;
    const doctor = () => {
      asked += 1;
      return answer.promise;
    };
    const house = await openHouse({ doctor });
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/doctor" });
    const away = async (): Promise<void> => {
      await page.getByRole("link", { name: "Inbox", exact: true }).click();
      await page.getByRole("heading", { name: "Inbox" }).waitFor({ state: "attached" });
      await page.goto(`${house.http}/#/operations/doctor`);
    };
    await page.getByRole("checkbox", { name: /^Contact models/ }).check();
    await page.getByRole("button", { name: "Run checks" }).click();
    await page.getByText("Checking…").waitFor();
    await away();
    await page.getByText("Checking…").waitFor();
    await expect.poll(() => page.getByRole("checkbox", { name: /^Contact models/ }).isChecked()).toBe(true);
    await page.getByRole("button", { name: "Run checks" }).click({ force: true });
    answer.resolve(ok(FINDINGS));
    await page.getByText("1 problem, 1 warning.").waitFor();
    await away();
    await page.getByText("1 problem, 1 warning.").waitFor();
    expect(asked).toBe(1);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token or link").fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("No checks were run").waitFor();
  });
});

describeInBrowser("backups", () => {
  test("a second tab shows the backup of the first and starts none; after a restart of the gateway both see it end", async () => {
    const held: string[] = [];
    const makeBackup = ({ file }: { file: string }, signal: AbortSignal) => {
      held.push(file);
      const { promise, resolve } = Promise.withResolvers<Result<Moved>>();
      signal.addEventListener("abort", () => resolve(fail("shutting_down", "the gateway has stopped")));
      return promise;
    };
    const house = await openHouse({ makeBackup });
    const options = { token: TOKEN, at: "operations/backups", dark: true, allow: CUT };
    const { page, context } = await visit(house.http, options);
    const button = page.getByRole("button", { name: "Back up now" });
    await button.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("progressbar", { name: "Backup" }).waitFor();
    const { page: other } = await visit(house.http, { ...options, context });
    await other.getByRole("progressbar", { name: "Backup" }).waitFor();
    const second = other.getByRole("button", { name: "Back up now" });
    await expect.poll(() => second.getAttribute("aria-disabled")).toBe("true");
    await second.press("Enter");
    await page.bringToFront();
    await page.keyboard.press("Enter");
    expect(held).toHaveLength(1);
    for (const one of [page, other])
      await expect.poll(() => one.getByText("a backup is being made").count()).toBe(0);
    const { port, dir } = house;
    await house.stop();
    await openHouse({ dir, gateway: { port }, makeBackup });
    for (const one of [page, other])
      await one.getByRole("progressbar", { name: "Backup" }).waitFor({ state: "detached" });
    await page.keyboard.press("Enter");
    await expect.poll(() => held.length).toBe(2);
  });

  test("a backup shows its progress and its failure, and then its size, time and folder", async () => {
    const held: { readonly file: string; end(result: Result<Moved>): void }[] = [];
    const house = await openHouse({
      makeBackup: ({ file }) => {
        const { promise, resolve } = Promise.withResolvers<Result<Moved>>();
        held.push({ file, end: resolve });
        return promise;
      },
    });
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/backups", viewport: PHONE });
    const button = page.getByRole("button", { name: "Back up now" });
    await page.getByText("No backup yet.").waitFor();
    await button.click();
    await expect.poll(() => held.length).toBe(1);
    const { file = "", end } = held[0] ?? {};
    mkdirSync(`${file}.unfinished-a`);
    writeFileSync(join(`${file}.unfinished-a`, "parley.sqlite"), "x".repeat(1_000));
    await page.getByText(/^1 kB of [\d.]+ [kM]B copied/).waitFor();
    const progress = page.getByRole("progressbar", { name: "Backup" });
    await expect.poll(() => progress.getAttribute("value")).toBe("1000");
    writeFileSync(join(`${file}.unfinished-a`, "parley.sqlite"), "x".repeat(50_000_000));
    await page.getByText("Copied. Checking the copy…").waitFor();
    await button.click({ force: true });
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    end?.(fail("store_unavailable", "the disk is full"));
    await page.getByText(/The backup failed just now: the disk is full/).waitFor();
    await button.click();
    await expect.poll(() => held.length).toBe(2);
    const next = held[1]?.file ?? "";
    writeFileSync(next, "x".repeat(2_000_000));
    const tally = { sessions: 1, messages: 1, runs: 1, unfinishedRuns: 0, pendingDeliveries: 0 };
    held[1]?.end(ok({ from: "a", to: next, tally }));
    await page.getByText("Last backup: just now, 2.0 MB.").waitFor();
    await expect.poll(() => page.getByText("The backup failed").count()).toBe(0);
    const row = page.getByRole("list", { name: "Backups" }).getByRole("listitem");
    await expect.poll(() => row.innerText()).toContain(next.slice(next.lastIndexOf("/") + 1));
    await page.getByText(join(house.dir, "backups")).waitFor();
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
  });
});

describeInBrowser("MCP servers and ACP agents", () => {
  test("a reader signs in at a server, and comes back to the list, where it is connected", async () => {
    const far = await openHouse();
    const servers = [httpServer("far", `${far.http}/mcp`)];
    const house = await openHouse({ choices: { tools: { mcp: mcpWith(servers) } } });
    const allow = /^request to http:\/\/127\.0\.0\.1:\d+\//;
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/servers", allow });
    await page.getByRole("button", { name: "Test far" }).click();
    await page.getByRole("button", { name: "Sign in at far" }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole("button", { name: "Sign in at far" }).click();
    await page.getByRole("heading", { name: "Allow this sign-in?" }).waitFor();
    await page.getByLabel(/^Your token/).fill(TOKEN);
    await page.getByRole("button", { name: "Allow" }).click();
    await page.getByText(/Signed in at far, which has \d+ tools/).waitFor();
    await page.getByText("connected", { exact: true }).waitFor();
    expect(new URL(page.url())).toMatchObject({ search: "", hash: "#/operations/servers" });
  });

  test("a server shows its tools after a test, or the reason of its failure; an agent shows its failed run", async () => {
    const witness = await openWitness();
    const tools = [{ name: "say_hello", inputSchema: { type: "object" } }];
    const servers = [
      badServer("good", { witness: witness.port, tools }),
      badServer("bad", { witness: witness.port, lastWords: "the disk is full" }),
    ];
    const runtime = { type: "acp", command: ["/opt/coder"], env: {}, permissions: "deny" } as never;
    const house = await openHouse({
      choices: {
        agents: [agentSettings("main"), agentSettings("coder", { runtime })],
        tools: { mcp: mcpWith(servers) },
      },
      play: () => {
        throw new Error("could not start /opt/coder");
      },
    });
    const client = await house.client();
    await client.agent({ agentId: "coder", message: "x", idempotencyKey: "x" }).done.catch(() => {});
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/servers", viewport: PHONE });
    const rows = page.getByRole("list", { name: "MCP servers" }).getByRole("listitem");
    await expect.poll(() => rows.count()).toBe(2);
    await expect.poll(() => rows.first().innerText()).toContain("not in use");
    await page.getByRole("button", { name: "Test good" }).click();
    await rows.first().getByText("connected", { exact: true }).waitFor();
    await rows.first().getByText("1 tool").click();
    await rows.first().getByText("say_hello").waitFor();
    await page.getByRole("button", { name: "Test bad" }).click();
    await rows
      .nth(1)
      .getByText(/did not start/)
      .waitFor();
    await rows.nth(1).getByText("failed", { exact: true }).waitFor();
    const agent = page.getByRole("list", { name: "ACP agents" }).getByRole("listitem");
    await expect
      .poll(() => agent.innerText())
      .toMatch(/not running[\s\S]*coder[\s\S]*could not start \/opt\/coder/);
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
  });
});
