// The tab for access to the gateway: access tokens, tokens of the configuration, and devices. Operators
// create, narrow and revoke tokens here.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { AccessTokenEntry, ConfiguredTokenEntry } from "../../../../src/contract/methods/tokens.ts";
import { tick } from "../../clock.ts";
import { ask, coversAll } from "../../gateway.ts";
import { Awaited } from "../../parts/failure.tsx";
import { ago } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { useReading } from "../../parts/reading.ts";
import { hrefOf } from "../../route.ts";
import { usePolling } from "../polling.ts";
import "../rows.css";
import { Devices, leftWords } from "./devices.tsx";
import { NarrowToken, NewToken, RevokeToken } from "./dialogs.tsx";
import "./tokens.css";
import { scopeWords } from "./words.ts";

/** Interval at which the tokens are read, because other clients use and change them. */
const EVERY_MS = 10_000;

type Open =
  | { readonly dialog: "new" }
  | { readonly dialog: "narrow" | "revoke"; readonly token: AccessTokenEntry };

function Rights({ of }: { of: Pick<AccessTokenEntry, "scopes" | "sessions"> }) {
  const { scopes, sessions } = of;
  return (
    <p class="chips">
      {scopeWords(scopes)} <span class="soft">·</span>{" "}
      {sessions === undefined ? (
        "every session"
      ) : (
        <>
          {sessions.map((pattern) => (
            <code key={pattern} class="chip">
              <Name text={pattern} />
            </code>
          ))}
          {sessions.length === 0 && "no session"}
        </>
      )}
    </p>
  );
}

function TokenRow(props: { token: AccessTokenEntry; children: ComponentChildren }) {
  const { token, children } = props;
  const now = tick.value;
  const { name, createdAtMs, lastUsedAtMs, expiresAtMs, createdFrom } = token;
  const used = lastUsedAtMs === undefined ? "never used" : `used ${ago(lastUsedAtMs, now)}`;
  return (
    <li class="out-row token-row">
      <div class="row-main">
        <p class="row-title">
          <strong>
            <Name text={name} />
          </strong>
          {token.current && <span class="chip tone-good">you</span>}
          {createdFrom === undefined && (
            <span class="chip tone-bad">refused: its creator's token was removed</span>
          )}
        </p>
        <Rights of={token} />
        <p class="soft">
          {used} · created {ago(createdAtMs, now)}
          {createdFrom !== undefined && (
            <> with {createdFrom === "generated" ? "the gateway's token" : createdFrom}</>
          )}{" "}
          · {leftWords(expiresAtMs, now)}
        </p>
      </div>
      <div class="row-actions">{children}</div>
    </li>
  );
}

function ConfiguredRow({ token }: { token: ConfiguredTokenEntry }) {
  const { setting, role, current } = token;
  return (
    <li class="out-row token-row">
      <div class="row-main">
        <p class="row-title">
          {setting === "generated" ? <strong>The gateway's token</strong> : <code>{setting}</code>}
          {role === "node" && <span class="chip">node</span>}
          {current && <span class="chip tone-good">you</span>}
        </p>
        {role === "node" ? <p>Connects nodes</p> : <Rights of={token} />}
      </div>
    </li>
  );
}

export function TokensTab() {
  const list = useReading("tokens", () => ask("tokens.list"));
  usePolling(EVERY_MS, list.again);
  const [open, setOpen] = useState<Open>();
  const close = (): void => setOpen(undefined);
  const { value, again } = list;
  const dialog = { onClose: close, onDone: () => void again() };
  return (
    <>
      <div class="bar head-bar">
        <h2>Tokens</h2>
        {value?.mayCreate === true && (
          <button type="button" class="primary" data-act="" onClick={() => setOpen({ dialog: "new" })}>
            New token
          </button>
        )}
      </div>
      <p class="soft">
        Access tokens let programs and people use this gateway, with at most your rights.
        {value?.mayCreate === false &&
          " You signed in with an access token, which cannot create other tokens."}
      </p>
      <Awaited {...list} />
      {value?.tokens.length === 0 && <p class="empty">No access tokens yet</p>}
      <ul class="out-rows card" aria-label="Access tokens">
        {value?.tokens.map((token) => (
          <TokenRow key={token.id} token={token}>
            <button
              type="button"
              aria-label={`Narrow ${token.name}`}
              onClick={() => setOpen({ dialog: "narrow", token })}
            >
              Narrow
            </button>
            <button
              type="button"
              class="danger"
              aria-label={`Revoke ${token.name}`}
              onClick={() => setOpen({ dialog: "revoke", token })}
            >
              Revoke
            </button>
          </TokenRow>
        ))}
      </ul>
      {value !== undefined && (
        <>
          <h2 class="tokens-title">Tokens of the configuration</h2>
          <p class="soft">To change them, edit gateway.auth and restart the gateway.</p>
          <ul class="out-rows card" aria-label="Tokens of the configuration">
            {value.configured.map((token) => (
              <ConfiguredRow key={token.setting} token={token} />
            ))}
          </ul>
        </>
      )}
      {coversAll() && <Devices />}
      <p class="soft tokens-note">
        <a href={hrefOf({ view: "operations", tab: "nodes" })}>Nodes</a> are paired devices with their own
        keys. Coding agents that joined have a token for their session only, until they leave.
      </p>
      {open?.dialog === "new" && <NewToken {...dialog} />}
      {open?.dialog === "narrow" && <NarrowToken token={open.token} {...dialog} />}
      {open?.dialog === "revoke" && <RevokeToken token={open.token} {...dialog} />}
    </>
  );
}
