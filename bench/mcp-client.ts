// The client that the official conformance suite of MCP tests: the gateway's own client of MCP servers. The
// suite starts it with the address of its server. It calls every tool of the server once, or those with the
// arguments that the scenario names. It signs in when the server asks for it: the suite's authorization
// server needs no person.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ElicitResult } from "@modelcontextprotocol/client";
import { fieldsOf } from "../src/core/json.ts";
import { completeAnswer, readForm } from "../src/core/rules/approval/form.ts";
import { fail, ok } from "../src/core/shapes/errors.ts";
import type { Asker } from "../src/tools/mcp/asking.ts";
import { Server } from "../src/tools/mcp/server.ts";
import { wantsSignIn } from "../src/tools/mcp/sign-in/sign-in.ts";
import { realWorld } from "../src/world.ts";
import { httpServer } from "../tests/tools/mcp-kit.ts";

const WAIT_MS = 20_000;
const SIGN_INS_MAX = 2;
const EXAMPLES: Readonly<Record<string, unknown>> = { number: 1, integer: 1, boolean: true, string: "x" };

interface Call {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

const url = process.argv.at(-1) ?? "";
const context = fieldsOf(JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}"));
const world = realWorld({ level: "silent", sync: true });
const dir = mkdtempSync(join(tmpdir(), "parley-mcp-client-"));
process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
const { client_id: clientId, client_secret: clientSecret, private_key_pem: privateKey } = context;
const { idp_id_token: idToken, idp_client_id: idpClient, idp_token_endpoint: idp, valid_jwt: jwt } = context;
const grant = /client-credentials/.test(process.env.MCP_CONFORMANCE_SCENARIO ?? "")
  ? ("client_credentials" as const)
  : ("jwt_bearer" as const);
const token = idToken ?? jwt;
const tokenFile = join(dir, "token");
if (typeof token === "string") writeFileSync(tokenFile, token);
const oauth = {
  clientMetadataUrl: "https://conformance-test.local/client-metadata.json",
  ...(typeof clientId === "string" ? { clientId } : {}),
  ...(typeof clientSecret === "string" ? { clientSecret } : {}),
  ...(typeof privateKey === "string" ? { privateKey } : {}),
  ...(grant === "client_credentials" ? { grant } : {}),
  ...(typeof token === "string" ? { grant, tokenFile } : {}),
  ...(typeof idp === "string" ? { identityProvider: { tokenUrl: idp, clientId: String(idpClient) } } : {}),
};
const { reach, ...others } = httpServer("suite", url);
const settings = { ...others, reach: { ...reach, oauth } };
const server = new Server({ settings, world, version: "1", environment: {}, dir });
const { signal } = new AbortController();
const untilMs = world.clock.monotonic() + WAIT_MS;

/** Answers questions as a person who gives an example for each field without a default. */
const asker: Asker = {
  runId: "suite",
  async elicit({ requestedSchema }) {
    const fields = readForm(requestedSchema, (text) => text);
    if (!fields.ok) return fields;
    const wanted = fields.value.filter(({ required, default: given }) => required && given === undefined);
    const content = Object.fromEntries(
      wanted.map(({ name, type, options }) => [name, options?.[0]?.value ?? EXAMPLES[type]]),
    );
    const answer = completeAnswer(fields.value, content);
    return answer.ok ? ok({ action: "accept", content: answer.value as ElicitResult["content"] }) : answer;
  },
  sample: async () => fail("approval_denied", "User rejected sampling request"),
};

/** Signs in as a person whose browser comes back at once. */
async function signIn(): Promise<void> {
  const begun = await server.signIn?.begin("http://localhost:3000/callback");
  if (begun?.ok !== true) throw new Error(begun?.error);
  const { headers } = await fetch(begun.value, { redirect: "manual" });
  const { searchParams } = new URL(headers.get("location") ?? "");
  const finished = await server.signIn?.finish(searchParams);
  if (finished?.ok !== true) throw new Error(finished?.error);
}

/** Repeats work after a sign-in, as often as a person would. */
async function withSignIns<T>(work: () => Promise<T>, errorOf: (value: T) => string): Promise<T> {
  for (let left = SIGN_INS_MAX; ; left -= 1) {
    const value = await work();
    if (left === 0 || !errorOf(value).includes(wantsSignIn(server.name))) return value;
    await signIn();
    server.endPause();
  }
}

const list = await withSignIns(
  () => server.tools({ untilMs, signal }),
  (read) => (read.ok ? "" : read.error),
);
if (!list.ok) throw new Error(list.error);
const { tools } = list.value;
const examples = tools.map(({ ownName, inputSchema }): Call => {
  const arguments_ = Object.entries(fieldsOf(inputSchema.properties)).map(([name, schema]) => [
    name,
    name === "schema" ? tools[0]?.inputSchema : EXAMPLES[String(fieldsOf(schema).type)],
  ]);
  return { name: ownName, arguments: Object.fromEntries(arguments_) };
});
const calls = (context.toolCalls as readonly Call[] | undefined) ?? examples;
for (const { name, arguments: args } of calls) {
  const tool = tools.find(({ ownName }) => ownName === name);
  if (tool === undefined) continue;
  const end = await withSignIns(
    () => server.call(tool, args, { untilMs, signal, mayAct: async () => true, asker }),
    (ended) => ("error" in ended ? ended.error : ""),
  );
  console.log(name, JSON.stringify(end));
}
await server.close();
