// The tool `send_file` with a chat on Telegram, which takes files.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SENT_FILE_MAX_BYTES } from "../../../src/core/sent-file.ts";
import { sendFile } from "../../../src/flows/delivery/sent-file.ts";
import { contentOfFile } from "../../../src/store/queries/channels/sent-files.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { cleanup, temporaryFolder } from "../../kit/engine/engine.ts";
import { telegramAccount } from "../../kit/platforms/people-channel.ts";
import { agentSettings, openApp } from "../../tools/app.ts";

const MAIN = "agent:main:main";
const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");

test("a file goes to the chat of the session, and its copy does not change with the workspace", async () => {
  const workspace = join(temporaryFolder(), "work");
  mkdirSync(workspace);
  const agents = [agentSettings("main", { workspace })];
  const app = await openApp({ channels: [telegramAccount("default")], agents });
  cleanup(() => app.close());
  const lastRoute = { channel: "telegram", to: "7", accountId: "default" };
  await app.engine.commit((unit) => updateSession(unit.tx, MAIN, { lastRoute }));
  const { db } = app.engine.store;
  writeFileSync(join(workspace, "plan.png"), PNG);
  const sent = await app.call(MAIN, "send_file", { path: "plan.png", caption: "**The** plan" });
  expect(sent).toMatchObject({ status: "accepted", channel: "telegram", to: "7", mimeType: "image/png" });
  expect(sent).not.toHaveProperty("note");
  writeFileSync(join(workspace, "plan.png"), "changed");
  const [row] = await db.selectFrom("deliveries").selectAll().execute();
  expect(row).toMatchObject({ state: "pending", session_key: MAIN, id: sent.fileId, file_id: sent.fileId });
  expect(await contentOfFile(db, String(sent.fileId))).toBe(PNG.toString("base64"));
  const [file] = await db.selectFrom("sent_files").selectAll().execute();
  expect(file).toMatchObject({ caption: "**The** plan", bytes: PNG.length });
});

test("a file that redaction has made larger than the platform takes is sent as a text that names it", async () => {
  const app = await openApp({ channels: [telegramAccount("default")] });
  cleanup(() => app.close());
  const lastRoute = { channel: "telegram", to: "7", accountId: "default" };
  await app.engine.commit((unit) => updateSession(unit.tx, MAIN, { lastRoute }));
  const content = Buffer.alloc(SENT_FILE_MAX_BYTES + 3, "[redacted]");
  const sent = await sendFile(app, {
    session: await app.session(MAIN),
    callId: "one",
    name: "log.txt",
    mimeType: "text/plain",
    bytes: content.length,
    content: content.toString("base64"),
    caption: "",
  });
  expect(sent).toMatchObject({ ok: true, value: { delivery: { route: lastRoute } } });
  const [row] = await app.engine.store.db.selectFrom("deliveries").selectAll().execute();
  expect(row).toMatchObject({ file_id: null, text: expect.stringContaining("log.txt") });
});
