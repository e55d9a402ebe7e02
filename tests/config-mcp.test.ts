// The configuration of outside MCP servers.

import { expect, test } from "vitest";
import { describeSettings } from "../src/config/describe.ts";
import { useConfigHome } from "./kit/process/config-home.ts";

const home = useConfigHome();
const mcp = (servers: unknown) => JSON.stringify({ tools: { mcp: { servers } } });

test("servers get defaults: paths become absolute, disabled servers are omitted, and variables are inserted", () => {
  const servers = {
    files: { command: "~/bin/files", args: ["--root", "~/x"], env: { KEY: "${KEY}" }, cwd: "place" },
    web: {
      url: "https://example.com/mcp",
      headers: { Authorization: "Bearer ${KEY}" },
      agents: ["Main"],
      tools: ["a*"],
    },
    off: { command: "x", enabled: false },
  };
  const { settings } = home().good(mcp(servers), { env: { KEY: "sesame" } });
  const folder = `${home().home}/.parley`;
  const rest = { allowSandboxed: false, sampling: false, startTimeoutSeconds: 60, timeoutSeconds: 60 };
  expect(settings.tools.mcp).toEqual({
    waitSeconds: 10,
    maxResultBytes: 64 * 1024,
    servers: [
      {
        ...rest,
        name: "files",
        agents: [],
        tools: [],
        reach: {
          kind: "stdio",
          command: `${home().home}/bin/files`,
          args: ["--root", "~/x"],
          env: { KEY: "sesame" },
          cwd: `${folder}/place`,
        },
      },
      {
        ...rest,
        name: "web",
        agents: ["main"],
        tools: ["a*"],
        reach: { kind: "http", url: "https://example.com/mcp", headers: { Authorization: "Bearer sesame" } },
      },
    ],
  });
});

test.each([
  [{ a: {} }, "tools.mcp.servers.a: must have a command (a program) or a url (an address)"],
  [{ a: { command: "x", url: "http://x/y" } }, "tools.mcp.servers.a.url: is not valid together with command"],
  [
    { a: { command: "x", headers: {} } },
    "tools.mcp.servers.a.headers: is valid only for a server with a url",
  ],
  [
    { a: { url: "http://x/y", env: {} } },
    "tools.mcp.servers.a.env: is valid only for a server with a command",
  ],
  [
    { a: { url: "http://x/y", oauth: { clientId: "c", clientSecret: "sesame" } } },
    "tools.mcp.servers.a.oauth.authorizationServer: is required with a clientSecret: the secret is sent to no other server",
  ],
  [{ a: { url: "ftp://x/y" } }, "tools.mcp.servers.a.url: must be an http or https address"],
  [
    { a: { url: "http://u:p@x/y" } },
    "tools.mcp.servers.a.url: must not contain user and password: use headers",
  ],
  [
    { a: { command: "x", agents: ["mian"] } },
    'tools.mcp.servers.a.agents[0]: there is no agent "mian"; the nearest is main',
  ],
  [{ a__b: { command: "x" } }, "is not a valid name: it must be 1 to 24 lower-case letters and digits"],
  [{ Files: { command: "x" } }, "is not a valid name"],
  [{ a: { command: "x", timeoutSeconds: 0 } }, "tools.mcp.servers.a.timeoutSeconds: must be at least 1"],
  [{ a: { command: "x", comand: "y" } }, "unknown key; the nearest valid key is tools.mcp.servers.a.command"],
])("an invalid server is reported with its path: %j", (servers, problem) => {
  expect(home().problems(mcp(servers)).join("\n")).toContain(problem);
});

test.each([
  [{ grant: "client_credentials", clientId: "c", privateKey: "k" }, "authorizationServer: is required with"],
  [{ grant: "client_credentials", clientId: "c" }, "privateKey: or clientSecret is required"],
  [{ grant: "client_credentials", clientId: "c", clientSecret: "s", privateKey: "k" }, "but not both"],
  [{ grant: "jwt_bearer", clientId: "c" }, "tokenFile: is required for jwt_bearer"],
  [{ grant: "jwt_bearer", tokenFile: "f" }, "clientId: is required with a grant"],
  [{ privateKey: "k" }, "privateKey: is valid only for client_credentials"],
  [{ tokenFile: "f" }, "tokenFile: is valid only for jwt_bearer"],
  [{ identityProvider: { tokenUrl: "http://x/y", clientId: "c" } }, "identityProvider: is valid only for"],
])("a sign-in without a person is reported if its keys do not fit: %j", (oauth, problem) => {
  expect(
    home()
      .problems(mcp({ a: { url: "http://x/y", oauth } }))
      .join("\n"),
  ).toContain(problem);
});

test("no error shows a secret of a server's environment, and the file must be readable by its owner only", () => {
  const problems = home().problems(mcp({ a: { command: "x", env: { KEY: 7788 } } }));
  expect(problems.join("\n")).not.toContain("7788");
  home().write(mcp({ a: { command: "x", env: { KEY: "sesame" } } }), undefined, 0o644);
  expect(
    home()
      .good(undefined as unknown as string)
      .warnings.join("\n"),
  ).toContain("other users can read it");
});

test("the described settings contain the names of secrets but never their values", () => {
  const servers = {
    files: { command: "x", args: ["--key", "sesame-1234"], env: { TOKEN: "sesame-1234" } },
    web: { url: "https://example.com/mcp?key=sesame-1234", headers: { Authorization: "Bearer sesame-1234" } },
  };
  const shown = describeSettings(home().good(mcp(servers)).settings);
  expect(shown.tools).toMatchObject({
    mcp: {
      servers: [
        { name: "files", command: "x", args: "(2)", env: { TOKEN: "(set)" } },
        { name: "web", url: "https://example.com/mcp", headers: { Authorization: "(set)" } },
      ],
    },
  });
  expect(JSON.stringify(shown)).not.toContain("sesame");
});
