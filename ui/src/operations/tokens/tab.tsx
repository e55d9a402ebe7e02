// The tab for access to the gateway: access tokens, tokens of the configuration, and devices. Operators
// create, narrow and revoke tokens here.

import type { AccessTokenEntry } from "../../../../src/contract/methods/tokens.ts";
import { tick } from "../../clock.ts";
import { ask, coversAll } from "../../gateway.ts";
import { ago } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { joinWords } from "../../parts/words.ts";
import { hrefOf } from "../../route.ts";
import { usePolled } from "../polling.ts";
import {
  ActionButton,
  ResourceList,
  type ResourceRow,
  type RowAction,
  useOpened,
} from "../resource-list.tsx";
import { Devices, leftWords } from "./devices.tsx";
import { NarrowToken, NewToken } from "./dialogs.tsx";
import { scopeWords } from "./words.ts";

/** Interval at which the tokens are read, because other clients use and change them. */
const EVERY_MS = 10_000;

const CREATE: RowAction = {
  label: "New token",
  class: "primary",
  dialog: (props) => <NewToken {...props} />,
};

function Rights({ of }: { of: Pick<AccessTokenEntry, "scopes" | "sessions"> }) {
  const { scopes, sessions } = of;
  return (
    <p class="line chips">
      {scopeWords(scopes)} <span class="soft">·</span>{" "}
      {sessions === undefined ? (
        "every session"
      ) : (
        <>
          {sessions.map((pattern) => (
            <Name as="code" key={pattern} class="chip" text={pattern} />
          ))}
          {sessions.length === 0 && "no session"}
        </>
      )}
    </p>
  );
}

function tokenRow(token: AccessTokenEntry, now: number): ResourceRow {
  const { id, name, createdAtMs, lastUsedAtMs, expiresAtMs, createdFrom, current } = token;
  const from = createdFrom === "generated" ? "the gateway's token" : createdFrom;
  return {
    key: id,
    name,
    beside: (
      <>
        {current && <span class="chip tone-good">you</span>}
        {createdFrom === undefined && (
          <span class="chip tone-bad">refused: its creator's token was removed</span>
        )}
      </>
    ),
    body: (
      <>
        <Rights of={token} />
        <p class="soft">
          {joinWords([
            lastUsedAtMs === undefined ? "never used" : `used ${ago(lastUsedAtMs, now)}`,
            `created ${ago(createdAtMs, now)}${from === undefined ? "" : ` with ${from}`}`,
            leftWords(expiresAtMs, now),
          ])}
        </p>
      </>
    ),
    actions: [
      { label: "Narrow", about: name, dialog: (props) => <NarrowToken token={token} {...props} /> },
      {
        label: "Revoke",
        about: name,
        class: "danger",
        run: () => ask("tokens.revoke", { id }),
        done: "Revoked.",
        question: {
          title: "Revoke this token?",
          text: (
            <>
              <p>
                <Name text={name} /> loses its access at once, on every connection.
              </p>
              {current && <p>You signed in with this token, so you will be signed out.</p>}
            </>
          ),
        },
      },
    ],
  };
}

export function TokensTab() {
  const list = usePolled("tokens", EVERY_MS, () => ask("tokens.list"));
  const { value, again } = list;
  const { opened, onOpen } = useOpened(again);
  const others =
    value?.mayCreate === false
      ? " You signed in with an access token, which cannot create other tokens."
      : "";
  return (
    <>
      <ResourceList
        title="Tokens"
        words={`Access tokens let programs and people use this gateway, with at most your rights.${others}`}
        head={value?.mayCreate === true && <ActionButton action={CREATE} onOpen={onOpen} data-act="" />}
        label="Access tokens"
        list={list}
        rows={value?.tokens}
        empty="No access tokens yet"
        row={(token) => tokenRow(token, tick.value)}
      />
      {value !== undefined && (
        <ResourceList
          title="Tokens of the configuration"
          words={
            <>
              To change them, edit the{" "}
              <a href={hrefOf({ view: "operations", tab: "configuration" })}>configuration</a> and restart the
              gateway.
            </>
          }
          rows={value.configured}
          row={(token) => ({
            key: token.setting,
            beside: (
              <>
                {token.setting === "generated" ? (
                  <strong>The gateway's token</strong>
                ) : (
                  <code>{token.setting}</code>
                )}
                {token.role === "node" && <span class="chip">node</span>}
                {token.current && <span class="chip tone-good">you</span>}
              </>
            ),
            body: token.role === "node" ? <p>Connects nodes</p> : <Rights of={token} />,
          })}
        />
      )}
      {coversAll() && <Devices />}
      <p class="soft tokens-note">
        <a href={hrefOf({ view: "operations", tab: "nodes" })}>Nodes</a> are paired devices with their own
        keys. Coding agents that joined have a token for their session only, until they leave.
      </p>
      {opened}
    </>
  );
}
