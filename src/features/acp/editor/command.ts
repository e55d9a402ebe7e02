// Implements `parley acp`: an editor talks to sessions over the standard streams of this command.
// Standard output carries only the protocol; messages for people go to standard error. If no gateway is
// running, this process runs one until the editor disconnects.

import { Readable, Writable } from "node:stream";
import { findAddress } from "../../../cli/address.ts";
import { type Cli, createCli, EXIT } from "../../../cli/cli.ts";
import { type Link, openLink } from "../../../cli/gateway-link.ts";
import { optional } from "../../../core/optional.ts";
import type { AcpOptions } from "./server.ts";

/** Time for the runs of this process's own gateway to finish after the editor has disconnected. */
const STOP_GRACE_MS = 10_000;
const MESSAGE_MAX_BYTES = 24 * 1024 * 1024;

/** Serves until the editor disconnects, a signal arrives, or the connection to the gateway is closed. */
async function serve(cli: Cli, link: Link, options: AcpOptions): Promise<number> {
  const sdk = await import("@agentclientprotocol/sdk/unstable");
  const { AcpServer } = await import("./server.ts");
  const { stdin, stdout, onSignal } = cli.parts;
  const stream = sdk.ndJsonStream(
    Writable.toWeb(stdout as Writable) as WritableStream<Uint8Array>,
    Readable.toWeb(stdin as Readable) as ReadableStream<Uint8Array>,
    { maxMessageBytes: MESSAGE_MAX_BYTES },
  );
  const server = new AcpServer(sdk, cli, link, options);
  const connection = server.app().connect(stream);
  const { promise: left, resolve } = Promise.withResolvers<number>();
  void server.overflow.then(() => {
    resolve(
      cli.fail({
        code: "too_slow",
        error: "The editor no longer reads the output of this command. Restart the agent in the editor.",
      }),
    );
  });
  void connection.closed.then(() => resolve(EXIT.done));
  const offs = [
    onSignal("SIGINT", () => resolve(EXIT.done)),
    onSignal("SIGTERM", () => resolve(EXIT.done)),
    link.client.onState((state, error) => {
      if (state === "reconnecting") cli.note("The connection to the gateway was lost. Reconnecting.");
      if (state === "connected") cli.note("Reconnected.");
      if (state === "closed")
        resolve(cli.fail({ code: error?.code ?? "CLOSED", error: error?.message ?? "" }));
    }),
  ];
  try {
    return await left;
  } finally {
    for (const off of offs) off();
    connection.close();
  }
}

export async function runAcp(
  given: Cli,
  { setup, ...options }: AcpOptions & { readonly setup?: boolean },
): Promise<number> {
  if (setup === true) return (await import("../../init/command.ts")).runInit(given, {});
  // --json is ignored, because standard output carries only the protocol.
  const cli = createCli(given.parts, { ...given.options, json: false });
  const { world } = cli.parts;
  const address = await findAddress(cli);
  const attached = address.ok ? await openLink(address.value, { reconnect: true, world }) : address;
  if (attached.ok) {
    using link = attached.value;
    return await serve(cli, link, options);
  }
  const { url, token, config } = cli.options;
  const mayEmbed = attached.code === "UNREACHABLE" && url === undefined && token === undefined;
  if (!mayEmbed) return cli.fail(attached);
  const opened = await cli.parts.openGateway({
    quiet: true,
    ...optional({ configPath: config }),
  });
  if (!opened.ok) return cli.fail(opened);
  const gateway = opened.value;
  cli.note(`No gateway was running, so this process runs one at ${gateway.httpUrl}.`);
  try {
    const opened = await openLink({ url: gateway.url, token: gateway.token }, { reconnect: true, world });
    if (!opened.ok) return cli.fail(opened);
    using link = opened.value;
    return await serve(cli, link, options);
  } finally {
    await gateway.close(STOP_GRACE_MS);
  }
}
