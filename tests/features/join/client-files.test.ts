// The files for registries and plugins are generated, fit into the registries, and name commands that work.
// `npm run plugins` installs the plugins into the real programs.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { parse } from "smol-toml";
import { expect, test } from "vitest";
import { TOOLS } from "../../../src/contract/tools.ts";
import { makeHome, startGateway } from "../../cli/kit.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { LAUNCHER, launch } from "../../kit/process/fleet.ts";
import { clientFiles, PACKAGE, ROOT } from "./client-files.ts";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

test.each(Object.entries(clientFiles()))("%s is generated (--update rewrites it)", async (path, text) => {
  await expect(text).toMatchFileSnapshot(join(ROOT, path));
});

interface Word {
  readonly name?: string;
  readonly value?: string;
}

test("the entry of the MCP registry is within its limits, and its command serves the session tools", async () => {
  const server = JSON.parse(read("server.json"));
  const [entry] = server.packages;
  expect(server.name).toBe(PACKAGE.mcpName);
  expect(server.name).toMatch(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/);
  expect(server.description.length).toBeLessThanOrEqual(100);
  expect([server.version, entry.version]).toEqual([PACKAGE.version, PACKAGE.version]);
  const words = (list: readonly Word[]) => list.flatMap(({ value }) => value ?? []);
  const command = [
    entry.runtimeHint,
    ...words(entry.runtimeArguments),
    entry.identifier,
    ...words(entry.packageArguments),
  ];
  expect(command).toEqual(["npx", "-y", PACKAGE.name, "mcp"]);

  const { home, port } = await makeHome();
  const gateway = await startGateway(home);
  cleanup(() => gateway.stop());
  // With every argument that the registry asks for.
  const values: Record<string, string> = {
    "--handle": "laptop",
    "--agent": "research",
    "--url": `ws://127.0.0.1:${port}`,
  };
  const named = (entry.packageArguments as Word[]).flatMap(({ name }) => name ?? []);
  const args = [LAUNCHER, ...command.slice(3), ...named.flatMap((name) => [name, values[name] ?? "?"])];
  const variables = (entry.environmentVariables as Word[]).map(({ name }) => name);
  expect(variables).toEqual(["PARLEY_TOKEN", "PARLEY_CONFIG"]);
  const env = { HOME: home, PATH: process.env.PATH ?? "", PARLEY_LOG: "silent" };
  const client = new Client({ name: "registry", version: "1" });
  cleanup(() => client.close());
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env }));
  expect(client.getServerVersion()).toMatchObject({ name: "parley" });
  expect(client.getInstructions()).toContain("agent:research:mcp:laptop");
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain("sessions_send");
});

test("the entry of the ACP registry is within its limits, and its command offers a sign-in in a terminal", async () => {
  const agent = JSON.parse(read("agent.json"));
  expect(agent).toMatchObject({
    id: expect.stringMatching(/^[a-z][a-z0-9-]*$/),
    version: PACKAGE.version,
    distribution: { npx: { package: `${PACKAGE.name}@${PACKAGE.version}`, args: ["acp"] } },
  });
  const icon = read("clients/zed/icon.svg");
  expect(icon).toMatch(/<svg [^>]*width="16" height="16" viewBox="0 0 16 16"/);
  const colours = [...icon.matchAll(/\b(?:fill|stroke)="([^"]*)"/g)].map(([, colour]) => colour);
  expect(new Set(colours)).toEqual(new Set(["none", "currentColor"]));

  const { home } = await makeHome();
  const child = launch(home, agent.distribution.npx.args);
  cleanup(() => {
    child.kill("SIGKILL");
  });
  const connection = acp
    .client({ name: "registry" })
    .connect(
      acp.ndJsonStream(
        Writable.toWeb(child.stdin as Writable) as WritableStream<Uint8Array>,
        Readable.toWeb(child.stdout as Readable) as ReadableStream<Uint8Array>,
      ),
    );
  cleanup(() => connection.close());
  // The capabilities with which the registry's own check asks.
  const clientCapabilities: acp.ClientCapabilities = { terminal: true, _meta: { "terminal-auth": true } };
  const hello = await connection.agent.request("initialize", { protocolVersion: 1, clientCapabilities });
  expect(hello.authMethods).toMatchObject([{ type: "terminal", args: ["--setup"] }]);
});

test("the manifest for Zed is valid TOML with this version and an archive for each system", () => {
  const manifest = parse(read("clients/zed/extension.toml")) as {
    id: string;
    version: string;
    agent_servers: { parley: { targets: Record<string, { archive: string; cmd: string }> } };
  };
  const { id, version } = manifest;
  expect({ id, version }).toEqual({ id: "parley", version: PACKAGE.version });
  const { targets } = manifest.agent_servers.parley;
  expect(Object.keys(targets)).toHaveLength(6);
  for (const { archive, cmd } of Object.values(targets)) {
    const folder = new RegExp(
      `/v${version}/(parley-gateway-${version}-(?:macos|linux|windows)-(?:arm64|x64))\\.`,
    );
    expect(cmd.startsWith(`./${folder.exec(archive)?.[1]}/parley`)).toBe(true);
  }
});

test("the skill of the plugins names only tools that exist", () => {
  const skill = read("clients/claude-code/skills/parley/SKILL.md");
  const named = [...skill.matchAll(/`((?:sessions|agents|subagents)\w*)/g)].map(([, name]) => name);
  expect(new Set(named).size).toBeGreaterThan(5);
  expect(named.filter((name) => !Object.hasOwn(TOOLS, name ?? ""))).toEqual([]);
});
