// Owns `parley acp`: an editor talks to sessions over this command's standard streams.
// AP1: standard output carries the protocol and nothing else; everything for people goes to standard error.
// AP2: without a gateway to attach to, this process is one for as long as the editor is there.

import { Readable, Writable } from "node:stream";
import type { DoorOptions } from "../acp/door.ts";
import { findAddress } from "../address.ts";
import { type Cli, createCli, EXIT } from "../cli.ts";
import { type Link, openLink } from "../gateway-link.ts";

/** How long an embedded gateway's runs may take to end when the editor has left. */
const STOP_GRACE_MS = 10_000;
const MESSAGE_MAX_BYTES = 24 * 1024 * 1024;

/** Serves until the editor leaves, a signal comes, or the gateway is gone for good. */
async function serve(cli: Cli, link: Link, options: DoorOptions): Promise<number> {
  const sdk = await import("@agentclientprotocol/sdk");
  const { Door } = await import("../acp/door.ts");
  const { stdin, stdout, onSignal } = cli.parts;
  const stream = sdk.ndJsonStream(
    Writable.toWeb(stdout as Writable) as WritableStream<Uint8Array>,
    Readable.toWeb(stdin as Readable) as ReadableStream<Uint8Array>,
    { maxMessageBytes: MESSAGE_MAX_BYTES },
  );
  const door = new Door(sdk, cli, link, options);
  const connection = door.app().connect(stream);
  const { promise: left, resolve } = Promise.withResolvers<number>();
  void door.overflow.then(() => {
    resolve(cli.fail({ code: "too_slow", error: "The editor has stopped reading what it is told." }));
  });
  void connection.closed.then(() => resolve(EXIT.done));
  const offs = [
    onSignal("SIGINT", () => resolve(EXIT.done)),
    onSignal("SIGTERM", () => resolve(EXIT.done)),
    link.client.onState((state, error) => {
      if (state === "reconnecting") cli.note("The connection to the gateway broke; trying again.");
      if (state === "connected") cli.note("Connected again.");
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

export async function runAcp(given: Cli, _args: readonly string[], options: DoorOptions): Promise<number> {
  // Also with --json: nothing of ours may stand in the protocol's stream.
  const cli = createCli(given.parts, { ...given.options, json: false });
  const { world } = cli.parts;
  const address = await findAddress(cli);
  if (!address.ok) return cli.fail(address);
  const attached = await openLink(address.value, { reconnect: true, world });
  if (attached.ok) return whileOpen(attached.value, () => serve(cli, attached.value, options));
  const { url, token, config } = cli.options;
  const mayEmbed = attached.code === "UNREACHABLE" && url === undefined && token === undefined;
  if (!mayEmbed) return cli.fail(attached);
  const opened = await cli.parts.openGateway({
    quiet: true,
    ...(config === undefined ? {} : { configPath: config }),
  });
  if (!opened.ok) return cli.fail(opened);
  const gateway = opened.value;
  cli.note(`No gateway is running: this process is one, at ${gateway.httpUrl}.`);
  try {
    const link = await openLink({ url: gateway.url, token: gateway.token }, { reconnect: true, world });
    if (!link.ok) return cli.fail(link);
    return await whileOpen(link.value, () => serve(cli, link.value, options));
  } finally {
    await gateway.close(STOP_GRACE_MS);
  }
}

async function whileOpen(link: Link, work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } finally {
    link.client.close();
  }
}
