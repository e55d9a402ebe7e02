// Approvals of commands: the question, its answers, and a process that dies before or after the answer.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { textOf } from "../../src/core/shapes/message.ts";
import type { PermissionQuestion, PermissionScope } from "../../src/core/shapes/permission.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { answerPermission, forgetRule } from "../../src/flows/permission.ts";
import { listRules } from "../../src/store/queries/permission-rules.ts";
import { openPermissions } from "../../src/store/queries/permissions.ts";
import { getRun } from "../../src/store/queries/runs/runs.ts";
import { deleteSessionRows } from "../../src/store/queries/sessions/sessions.ts";
import type { Store } from "../../src/store/sql.ts";
import { cleanup, endOf, openStore, quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { dyingStore, startRealEngine } from "../kit/engine/real-engine.ts";
import { type ScriptedAnswer, scriptedModel } from "../kit/scripted-model.ts";
import { until } from "../kit/until.ts";
import { agentSettings, type Choices, settingsWith } from "../tools/app.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const OWNER = { covers: () => true, everySession: true };
const APPEND = "echo ran >> log.txt";

/** A model that gives each line of its input to the tool of that name, then reports the results. */
const model = () =>
  scriptedModel(({ entries }): ScriptedAnswer => {
    const messages = entries.filter((entry) => "role" in entry);
    const at = messages.findLastIndex((message) => message.role === "user");
    const results = messages.slice(at + 1).filter((message) => message.role === "toolResult");
    const input = messages[at];
    const [tool = "", ...rest] = (input === undefined ? "" : textOf(input)).split(" ");
    if (results.length > 0) return results.map((one) => textOf(one)).join("\n");
    if (tool === "spawn")
      return { toolCalls: [{ name: "sessions_spawn", arguments: { task: rest.join(" ") } }] };
    return { toolCalls: [{ name: "exec", arguments: { command: rest.join(" ") } }] };
  });

interface Life {
  readonly engine: Engine;
  readonly store: Store;
  readonly dir: string;
}

interface How {
  readonly dir?: string;
  readonly choices?: Choices;
  /** Called in every transaction, after its work. A `Crash` kills the process. */
  readonly dies?: Parameters<typeof dyingStore>[1];
}

/** Starts a process whose agents ask an owner before they run risky commands. */
async function live({ dir = temporaryFolder(), choices, dies }: How = {}): Promise<Life> {
  const world = quietWorld();
  const workspace = join(dir, "workspace");
  mkdirSync(workspace, { recursive: true });
  const agents = ["main", "research"].map((id) => agentSettings(id, { workspace }));
  const { tools } = settingsWith();
  const exec = { ...tools.exec, approval: "risky" as const };
  const settings = settingsWith({ agents, tools: { exec }, ...choices });
  const disk = await openStore(join(dir, "store"), world);
  const { store } = dyingStore(disk, dies ?? (async () => false));
  const own = { ...settings, store: { ...settings.store, dir: join(dir, "store") } };
  const engine = await startRealEngine({ settings: own, store, world, port: model(), maxConcurrent: 1 });
  cleanup(() => engine.stop(0));
  return { engine, store: disk, dir };
}

async function say({ engine }: Life, text: string, sessionKey = MAIN): Promise<string> {
  const accepted = await engine.accept({ sessionKey, input: { text } });
  if (!accepted.ok) throw new Error(accepted.error);
  return accepted.value.run.runId;
}

const asked = ({ store, engine }: Life): Promise<PermissionQuestion> =>
  until(async () => (await openPermissions(store.db, engine.now()))[0] ?? false);

async function answer(
  { engine }: Pick<Life, "engine">,
  { id }: PermissionQuestion,
  decision: "allow" | "deny",
  scope: PermissionScope = "once",
) {
  return engine.commit((unit) => answerPermission(unit, { id, decision, scope, by: "ann" }, OWNER));
}

async function resultOf({ engine }: Life, runId: string): Promise<Record<string, unknown>> {
  return JSON.parse((await endOf(engine, runId)).reply ?? "") as Record<string, unknown>;
}

const log = ({ dir }: Life): string => {
  const path = join(dir, "workspace", "log.txt");
  return existsSync(path) ? readFileSync(path, "utf8") : "";
};

async function stop({ engine, store }: Life): Promise<void> {
  await engine.stop(0);
  await store.close();
}

test("a risky command runs after an owner has allowed it, and one that only reads runs at once", async () => {
  const life = await live();
  expect(await resultOf(life, await say(life, "exec pwd && ls"))).toMatchObject({
    status: "ok",
    exitCode: 0,
  });
  const runId = await say(life, `exec ${APPEND}`);
  const question = await asked(life);
  expect(question).toMatchObject({ sessionKey: MAIN, agentId: "main", runId, title: APPEND, kind: "exec" });
  const folder = join(life.dir, "workspace");
  expect(question.detail).toBe(
    `folder: ${folder}; reason: the command has more than plain words, at ">> log.txt"`,
  );
  expect(log(life)).toBe("");
  await answer(life, question, "allow");
  expect(await resultOf(life, runId)).toMatchObject({ status: "ok", exitCode: 0 });
  expect(log(life)).toBe("ran\n");
  expect(await life.store.db.selectFrom("permissions").selectAll().execute()).toEqual([]);
});

test("a denied command does not run, and the model is told so", async () => {
  const life = await live();
  const runId = await say(life, `exec ${APPEND}`);
  await answer(life, await asked(life), "deny");
  expect(await resultOf(life, runId)).toEqual({
    status: "forbidden",
    code: "approval_denied",
    error: "denied by the owner; the command was not run",
    hint: "Don't retry the same command. Continue without it, or say what you need and why.",
  });
  expect(log(life)).toBe("");
});

test("a request that nobody answers expires as a denial", async () => {
  const { tools } = settingsWith();
  const exec = { ...tools.exec, approval: "always" as const, askSeconds: 0.05 };
  const life = await live({ choices: { tools: { exec } } });
  expect(await resultOf(life, await say(life, "exec pwd"))).toMatchObject({
    code: "approval_denied",
    error: "nobody approved the command within 0.05 seconds; the command was not run",
  });
});

test("I6: a run that waits for an approval holds no slot, and a stop ends it", async () => {
  const life = await live();
  const runId = await say(life, `exec ${APPEND}`);
  const question = await asked(life);
  await until(async () => (await getRun(life.store.db, runId))?.state === "waiting");
  expect(await resultOf(life, await say(life, "exec pwd", RESEARCH))).toMatchObject({ status: "ok" });
  await life.engine.abort({ sessionKey: MAIN, runId });
  expect(await endOf(life.engine, runId)).toMatchObject({ state: "aborted" });
  expect(await answer(life, question, "allow")).toMatchObject({ ok: false, code: "permission_not_found" });
  expect(log(life)).toBe("");
});

describe("if the process dies", () => {
  test("before the answer, the next one waits for the answer to the same request, and the command runs once", async () => {
    const first = await live();
    const runId = await say(first, `exec ${APPEND}`);
    const question = await asked(first);
    await stop(first);
    const second = await live({ dir: first.dir });
    expect(await asked(second)).toEqual(question);
    await until(async () => (await getRun(second.store.db, runId))?.attempt === 2);
    await answer(second, question, "allow");
    expect(await resultOf(second, runId)).toMatchObject({ status: "ok", exitCode: 0 });
    expect(log(second)).toBe("ran\n");
  });

  test.each([
    ["allow", { status: "ok", exitCode: 0 }, "ran\n"],
    ["deny", { code: "approval_denied" }, ""],
  ] as const)(
    "after the answer %s, the next one uses the answer and does not ask again",
    async (decision, result, written) => {
      const isDecided = async (tx: Store["db"]) => {
        const row = await tx.selectFrom("permissions").select("decision").executeTakeFirst();
        return row === undefined ? false : row.decision !== null;
      };
      const dir = temporaryFolder();
      let answered = false;
      const first = await live({ dir, dies: async (tx) => answered && !(await isDecided(tx)) });
      const runId = await say(first, `exec ${APPEND}`);
      const question = await asked(first);
      await first.store.transaction(async (tx) => {
        answered = true;
        const row = { decision, scope: "once", decided_by: "ann", decided_at: 1 } as const;
        await tx.updateTable("permissions").set(row).execute();
      });
      await stop(first);
      const second = await live({ dir });
      expect(await resultOf(second, runId)).toMatchObject(result);
      expect(log(second)).toBe(written);
      expect(question.runId).toBe(runId);
      const rows = await second.store.db.selectFrom("permissions").select("decision").execute();
      expect(rows).toEqual(decision === "allow" ? [] : [{ decision: "deny" }]);
    },
  );

  test("after the command has begun, it does not run again and its outcome is unknown", async () => {
    const dir = temporaryFolder();
    const hasResult = async (tx: Store["db"]) =>
      (await tx.selectFrom("messages").select("id").where("role", "=", "toolResult").executeTakeFirst()) !==
      undefined;
    const first = await live({ dir, dies: hasResult });
    const runId = await say(first, `exec ${APPEND}`);
    await answer(first, await asked(first), "allow");
    await until(() => log(first) !== "");
    await stop(first);
    const second = await live({ dir });
    expect(await resultOf(second, runId)).toMatchObject({ code: "outcome_unknown" });
    expect(log(second)).toBe("ran\n");
  });

  test("before the answer and the next one need not ask, the command runs and its request is deleted", async () => {
    const dir = temporaryFolder();
    const first = await live({ dir });
    const runId = await say(first, `exec ${APPEND}`);
    await asked(first);
    await stop(first);
    const { tools } = settingsWith();
    const choices = { tools: { exec: { ...tools.exec, approval: "never" as const } } };
    const second = await live({ dir, choices });
    expect(await resultOf(second, runId)).toMatchObject({ status: "ok" });
    expect(log(second)).toBe("ran\n");
    expect(await second.store.db.selectFrom("permissions").selectAll().execute()).toEqual([]);
  });
});

describe("a command that is allowed for longer", () => {
  const runs = async (life: Life, sessionKey = MAIN, command = APPEND) =>
    resultOf(life, await say(life, `exec ${command}`, sessionKey));

  test("in this session runs there without a question until the session is deleted", async () => {
    const life = await live();
    const runId = await say(life, `exec ${APPEND}`);
    await answer(life, await asked(life), "allow", "session");
    await resultOf(life, runId);
    expect(await runs(life)).toMatchObject({ status: "ok" });
    expect(log(life)).toBe("ran\nran\n");
    expect(await listRules(life.store.db)).toMatchObject([
      { sessionKey: MAIN, scope: "session", command: APPEND, createdBy: "ann" },
    ]);
    const other = await say(life, `exec ${APPEND} # more`);
    await answer(life, await asked(life), "deny");
    await resultOf(life, other);
    await life.store.transaction((tx) => deleteSessionRows(tx, MAIN, { transcripts: true }));
    expect(await listRules(life.store.db)).toEqual([]);
  });

  test("always runs in all sessions of its agent, after a restart, until the rule is deleted", async () => {
    const first = await live();
    const runId = await say(first, `exec ${APPEND}`);
    await answer(first, await asked(first), "allow", "always");
    await resultOf(first, runId);
    await stop(first);
    const life = await live({ dir: first.dir });
    expect(await runs(life)).toMatchObject({ status: "ok" });
    const foreign = await say(life, `exec ${APPEND}`, RESEARCH);
    await answer(life, await asked(life), "deny");
    expect(await resultOf(life, foreign)).toMatchObject({ code: "approval_denied" });
    const [rule] = await listRules(life.store.db);
    await life.engine.commit((unit) => forgetRule(unit, rule?.id ?? "", () => true));
    const again = await say(life, `exec ${APPEND}`);
    await answer(life, await asked(life), "deny");
    expect(await resultOf(life, again)).toMatchObject({ code: "approval_denied" });
  });
});

describe("AP2: the files that a command names", () => {
  const SCRIPT = "bash x.sh";
  const writeScript = ({ dir }: Life, text: string) =>
    writeFileSync(join(dir, "workspace", "x.sh"), `echo ${text} >> log.txt\n`);
  const CHANGED = '"x.sh" has changed since the command was allowed';

  test("if one changes before the answer, the owner is asked again, and says yes to the new one", async () => {
    const life = await live();
    writeScript(life, "good");
    const runId = await say(life, `exec ${SCRIPT}`);
    const first = await asked(life);
    writeScript(life, "evil");
    await answer(life, first, "allow");
    const second = await until(async () => {
      const question = await asked(life);
      return question.id !== first.id && question;
    });
    expect(second.asked).toMatchObject({ command: SCRIPT, reason: CHANGED });
    expect(log(life)).toBe("");
    await answer(life, second, "allow");
    expect(await resultOf(life, runId)).toMatchObject({ status: "ok" });
    expect(log(life)).toBe("evil\n");
  });

  test("if one changes after `always`, the owner is asked again, and the new rule replaces the old one", async () => {
    const life = await live();
    writeScript(life, "one");
    const first = await say(life, `exec ${SCRIPT}`);
    await answer(life, await asked(life), "allow", "always");
    await resultOf(life, first);
    expect(await resultOf(life, await say(life, `exec ${SCRIPT}`))).toMatchObject({ status: "ok" });
    writeScript(life, "two");
    const changed = await say(life, `exec ${SCRIPT}`);
    const question = await asked(life);
    expect(question.asked).toMatchObject({ reason: CHANGED });
    expect(log(life)).toBe("one\none\n");
    await answer(life, question, "allow", "always");
    await resultOf(life, changed);
    expect(await resultOf(life, await say(life, `exec ${SCRIPT}`))).toMatchObject({ status: "ok" });
    expect(log(life)).toBe("one\none\ntwo\ntwo\n");
    expect(await listRules(life.store.db)).toHaveLength(1);
  });

  test("if one appears after `always`, the owner is asked again", async () => {
    const life = await live();
    const command = "npm run x || true";
    const first = await say(life, `exec ${command}`);
    await answer(life, await asked(life), "allow", "always");
    await resultOf(life, first);
    writeFileSync(join(life.dir, "workspace", "package.json"), "{}");
    const second = await say(life, `exec ${command}`);
    expect((await asked(life)).asked?.reason).toBe(
      '"package.json" has changed since the command was allowed',
    );
    await answer(life, await asked(life), "deny");
    await resultOf(life, second);
  });

  test("if one changes while the process is dead, the answer before does not count", async () => {
    const life = await live();
    writeScript(life, "good");
    const runId = await say(life, `exec ${SCRIPT}`);
    const first = await asked(life);
    await stop(life);
    writeScript(life, "evil");
    const second = await live({ dir: life.dir });
    await answer(second, first, "allow");
    await until(async () => (await asked(second)).id !== first.id);
    await answer(second, await asked(second), "deny");
    expect(await resultOf(second, runId)).toMatchObject({ code: "approval_denied" });
    expect(log(second)).toBe("");
  });
});

test("the owner sees the whole command, and the rule keeps it, without redaction", async () => {
  const life = await live();
  const command = `DB_PASSWORD="$(id)" true\n#\u202e \u001b[2K\r${"a".repeat(600)}`;
  const runId = await say(life, `exec ${command}`);
  const question = await asked(life);
  const shown = `DB_PASSWORD="$(id)" true⏎\n#\\u{202e} \\x1b[2K\\x0d${"a".repeat(600)}`;
  expect(question).toMatchObject({ title: shown, asked: { command: shown } });
  // Bash makes other names of this command, so it can't be allowed for longer.
  expect(question.scopes).toEqual(["once"]);
  await answer(life, question, "allow", "once");
  expect(await resultOf(life, runId)).toMatchObject({ status: "ok" });
  const plain = "TOKEN=\u202eabc true";
  const second = await say(life, `exec ${plain}`);
  await answer(life, await asked(life), "allow", "always");
  await resultOf(life, second);
  expect(await listRules(life.store.db)).toMatchObject([{ command: "TOKEN=\\u{202e}abc true" }]);
  const rows = await life.store.db.selectFrom("permission_rules").select("command").execute();
  expect(rows).toEqual([{ command: plain }]);
  expect(await resultOf(life, await say(life, `exec ${plain}`))).toMatchObject({ status: "ok" });
});

test("a command that an owner can't see in full is denied without a question", async () => {
  const life = await live();
  expect(await resultOf(life, await say(life, `exec echo ${"x".repeat(1_500)} > a.txt`))).toMatchObject({
    code: "approval_denied",
    hint: "Write it to a file with write, then run the file.",
  });
});
