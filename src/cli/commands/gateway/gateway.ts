// Implements `parley` and `parley gateway`: starts the gateway in this terminal, prints four lines about it,
// and stops it on a signal. After the first SIGTERM or SIGINT, running work may finish for some seconds; the
// rest is stored for the next start. A second SIGINT exits at once. Accepted work is on disk, so neither
// signal loses it.
// GW2: the token is printed only to a terminal, as part of the page's link.

import { once } from "node:events";
import { join } from "node:path";
import { TOKEN_FILE } from "../../../contract/protocol.ts";
import { optional } from "../../../core/optional.ts";
import { storeName } from "../../../core/shapes/settings/settings.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { releaseIdleMemory, thisMachine } from "../../../world/idle-memory.ts";
import { pageLink } from "../../address.ts";
import { type Cli, EXIT, stopOnSignals } from "../../cli.ts";
import { count } from "../../layout.ts";
import type { RunningGateway } from "../../parts.ts";

/** Time for running work to finish. Work that takes longer is stored and continues at the next start. */
const STOP_GRACE_MS = 3_000;
const KEYS = "ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY";
const OFFLINE_PROVIDER = "offline/";

interface StartOptions {
  readonly port?: number;
  readonly host?: string;
}

/**
 * Returns the line about the page's link. On a terminal the line has the link. In a log, which must not
 * contain the token, it says how to get the link.
 */
function pageLine({ parts, options: { json } }: Cli, gateway: RunningGateway, parley: string): string {
  const { httpUrl, token } = gateway;
  if (parts.isTTY && !json) return `Page: ${pageLink(httpUrl, token)}`;
  return `Page: ${httpUrl} (the link that signs in: ${parley} link)`;
}

/** Returns the lines printed after the start: agents, page, store, next command. */
export function startLines(cli: Cli, gateway: RunningGateway): string[] {
  const { settings } = gateway;
  const agents = settings.agents.map((agent) => agent.id).join(", ");
  const models = [...new Set(settings.agents.map((agent) => agent.model))];
  const offline = models.every((model) => model.startsWith(OFFLINE_PROVIDER));
  const model = offline
    ? `on the offline model, which needs no key (for a real one set ${KEYS})`
    : `on ${models.join(", ")}`;
  const token = gateway.tokenIsGenerated
    ? `token in ${join(settings.store.dir, TOKEN_FILE)}`
    : "token as configured";
  const { config } = cli.options;
  const parley = `npx parley-gateway${config === undefined ? "" : ` --config ${config}`}`;
  return [
    `Parley is running: ${count(settings.agents.length, "agent")} (${agents}) ${model}.`,
    pageLine(cli, gateway, parley),
    `Store: ${storeName(settings.store)}, ${token}.`,
    `Or, in another terminal: ${parley} chat`,
  ].map(safeLine);
}

export async function runGateway(cli: Cli, options: StartOptions): Promise<number> {
  const { config } = cli.options;
  using stop = stopOnSignals(cli.parts, () =>
    cli.note("Stopping within 10 s: running work finishes or is saved. Press Ctrl-C again to stop at once."),
  );
  const opened = await cli.parts.openGateway({
    stop: stop.signal,
    ...optional({ configPath: config, port: options.port, host: options.host }),
  });
  // A signal during the start cancels only the wait for the database.
  if (!opened.ok) return stop.signal.aborted ? EXIT.done : cli.fail(opened);
  const gateway = opened.value;
  for (const warning of gateway.warnings) cli.note(`warning: ${safeLine(warning)}`);
  for (const line of startLines(cli, gateway)) cli.line(line);
  const { url, httpUrl, settings, configPath } = gateway;
  const agents = settings.agents.map(({ id, model }) => ({ id, model }));
  cli.document({ ok: true, url, httpUrl, storeDir: settings.store.dir, configPath, agents });
  // In a terminal the signal means that the terminal was closed, which stops the gateway.
  const { reload } = gateway;
  const onHup = reload && !cli.parts.isTTY ? cli.parts.onSignal("SIGHUP", reload) : undefined;
  const leaveMemory = releaseIdleMemory(cli.parts.world.clock, thisMachine());
  if (!stop.signal.aborted) await once(stop.signal, "abort");
  leaveMemory();
  onHup?.();
  await gateway.close(STOP_GRACE_MS);
  return EXIT.done;
}
