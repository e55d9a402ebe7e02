// `parley tokens` against a real gateway: creating, listing, narrowing and revoking access tokens.

import { expect, test } from "vitest";
import { makeHome, run, runJson, startGateway } from "../kit.ts";

const as = (home: string, token: string, ...args: string[]) => run(home, ["--token", token, ...args]);

test("TC1: `tokens create` prints only the token, which works until `tokens revoke`", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  expect(await run(home, ["tokens"])).toMatchObject({
    code: 0,
    out: expect.stringMatching(
      /^No access tokens\. .*\n\nSETTING +RIGHTS +SESSIONS\n.*operator\.admin +all\n$/,
    ),
  });
  const made = await run(home, [
    "tokens",
    "create",
    "ci",
    "--sessions",
    "agent:ops:*",
    "cron:*",
    "--days",
    "7",
  ]);
  expect(made.code).toBe(0);
  expect(made.out).toMatch(/^\S{40,}\n$/);
  expect(made.err).toContain("operator.read, sessions: agent:ops:*, cron:*; 7 days");
  const token = made.out.trim();
  expect((await as(home, token, "sessions")).code).toBe(0);
  expect((await as(home, token, "tokens")).err).toContain("operator.admin");
  const { out } = await run(home, ["tokens", "list"]);
  expect(out).toMatch(/^\w{8} +ci +operator\.read +agent:ops:\*, cron:\* +\d+ s ago +in 7 days$/m);
  expect(out).not.toContain(token);
  const [id = ""] = /^\w{8}(?= +ci )/m.exec(out) ?? [];
  expect(await run(home, ["tokens", "revoke", id])).toMatchObject({
    code: 0,
    out: 'Revoked "ci". Its connections are closed.\n',
  });
  expect((await as(home, token, "sessions")).code).toBe(1);
});

test("`tokens narrow` takes rights by the token's name, and refuses to give any", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const made = await runJson(home, ["tokens", "create", "laptop", "--scope", "operator.admin"]);
  expect(made).toMatchObject({ ok: true, token: expect.any(String), entry: { name: "laptop" } });
  const token = String(made.token);
  const narrow = (...args: string[]) => run(home, ["tokens", "narrow", "laptop", ...args]);
  expect(await narrow()).toMatchObject({ code: 2, err: expect.stringContaining("--scope, --sessions") });
  expect(await narrow("--scope", "operator.write", "--sessions", "agent:main:*")).toMatchObject({
    code: 0,
    out: 'Narrowed "laptop" to operator.write, sessions: agent:main:*.\n',
  });
  expect((await as(home, token, "devices")).code).toBe(1);
  const wider = await narrow("--scope", "operator.admin");
  expect(wider).toMatchObject({ code: 1, err: expect.stringContaining("cannot give a token more rights") });
});

test("a wrong name is answered with the nearest one, and an ambiguous one with the ids", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  await run(home, ["tokens", "create", "laptop"]);
  const wrong = await run(home, ["tokens", "revoke", "labtop"]);
  expect(wrong.code).toBe(1);
  expect(wrong.err).toContain('has the id or name "labtop". Did you mean "laptop"?');
  await run(home, ["tokens", "create", "laptop"]);
  const both = await run(home, ["tokens", "revoke", "laptop"]);
  expect(both.code).toBe(1);
  expect(both.err).toMatch(/2 access tokens match "laptop"\. Give a whole id: \S{36}, \S{36}/);
  expect((await run(home, ["tokens", "revoke", ""])).code).toBe(1);
  expect((await run(home, ["tokens", "remove"])).err).toContain('unknown command "remove"');
  expect((await run(home, ["tokens", "create", "x", "--scope", "all"])).code).toBe(2);
  expect((await run(home, ["tokens"])).out.match(/^\w{8} +laptop /gm)).toHaveLength(2);
});

test("a name that is the beginning of another token's id names its own token; an id needs four characters", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const created = async (name: string) =>
    (await runJson(home, ["tokens", "create", name])) as { entry: { id: string } };
  const { id } = (await created("ci")).entry;
  const name = id.slice(0, 3);
  await created(name);
  const revoke = async (word: string) => (await run(home, ["tokens", "revoke", word])).out;
  expect(await revoke(name)).toBe(`Revoked "${name}". Its connections are closed.\n`);
  expect(await revoke(name)).toBe("");
  expect(await revoke(id.slice(0, 4))).toBe('Revoked "ci". Its connections are closed.\n');
});
