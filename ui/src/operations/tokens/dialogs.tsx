// The dialogs that create, narrow and revoke an access token. A new token is shown only once, so only a
// button closes its dialog: the reader must not lose the token by Escape or a click outside.

import { useEffect, useRef, useState } from "preact/hooks";
import type { AccessTokenEntry } from "../../../../src/contract/methods/tokens.ts";
import { SCOPES } from "../../../../src/core/rules/scopes.ts";
import type { TokenScope } from "../../../../src/core/shapes/settings/settings.ts";
import { Copy } from "../../conversation/text/copy.tsx";
import { ask, may } from "../../gateway.ts";
import { type Field, SchemaForm, type Texts } from "../../inbox/form.tsx";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Name } from "../../parts/name.tsx";
import { complain, say } from "../../parts/notices.tsx";
import type { DialogProps } from "../resource-list.tsx";
import { Sessions } from "./sessions.tsx";
import { highest, patternsIn, scopeOptions } from "./words.ts";

const NAME_MAX_CHARS = 64;
const DAYS = [
  ["1", "1 day"],
  ["7", "7 days"],
  ["30", "30 days"],
  ["90", "90 days"],
  ["366", "1 year"],
] as const;

/** The field of the rights, which are at most these. */
function rights(most: TokenScope, first: TokenScope): Field {
  return { name: "scope", title: "Rights", type: "choice", choices: scopeOptions(most), default: first };
}

/** A token that was created. `token`: its text; absent if the answer with the text was lost. */
interface Made {
  readonly entry: AccessTokenEntry;
  readonly token?: string;
}

function Shown({ made: { entry, token }, onClose }: { made: Made; onClose: () => void }) {
  const isLost = token === undefined;
  return (
    <Dialog
      title={isLost ? "The token was lost" : "Copy the new token"}
      onClose={isLost ? onClose : () => {}}
    >
      {isLost ? (
        <p>
          The gateway created <Name text={entry.name} />, but the connection broke before its answer arrived.
          Revoke it, and create another.
        </p>
      ) : (
        <>
          <p>
            This is the only time that the token of <Name text={entry.name} /> is shown.
          </p>
          <div class="row sunken token-text">
            <code>{token}</code>
            <Copy text={() => token} name="the token" />
          </div>
        </>
      )}
      <div class="actions">
        <Button text={isLost ? "Close" : "Done"} class="primary" onClick={onClose} />
      </div>
    </Dialog>
  );
}

/** Returns the chosen rights: the scope, and the sessions if there are patterns. */
function readRights(scope: string | undefined, sessions: string) {
  const patterns = patternsIn(sessions);
  return { scopes: [scope as TokenScope], ...(patterns.length === 0 ? {} : { sessions: patterns }) };
}

export function NewToken({ onClose, onDone }: DialogProps) {
  const most = SCOPES.find((one) => may(one)) ?? "operator.read";
  const [sessions, setSessions] = useState("");
  const [made, setMade] = useState<Made>();
  const isOpen = useRef(true);
  useEffect(
    () => () => {
      isOpen.current = false;
    },
    [],
  );
  const create = async ({ name = "", scope, days }: Texts): Promise<void> => {
    const wanted = { name: name.trim(), days: Number(days), ...readRights(scope, sessions) };
    const answer = await ask("tokens.create", wanted);
    setMade(answer);
    onDone();
    // The dialog was closed meanwhile, so nobody has seen the token.
    if (!isOpen.current)
      complain(`The token ${answer.entry.name} was created after its dialog was closed: revoke it.`);
  };
  if (made !== undefined) return <Shown made={made} onClose={onClose} />;
  return (
    <Dialog title="New access token" onClose={onClose}>
      <SchemaForm
        action="Create"
        fields={[
          {
            ...{ name: "name", title: "Name", required: true, maxChars: NAME_MAX_CHARS },
            placeholder: "The person or program",
          },
          rights(most, "operator.read"),
          { name: "days", title: "Expires after", type: "choice", choices: DAYS, default: "90" },
        ]}
        onSubmit={create}
        onClose={onClose}
      >
        <Sessions value={sessions} placeholder="All sessions that your token covers" onInput={setSessions} />
      </SchemaForm>
    </Dialog>
  );
}

export function NarrowToken({ token, onClose, onDone }: DialogProps & { token: AccessTokenEntry }) {
  const most = highest(token.scopes) ?? "operator.read";
  const [sessions, setSessions] = useState((token.sessions ?? []).join(", "));
  const narrow = async ({ scope }: Texts): Promise<void> => {
    await ask("tokens.narrow", { id: token.id, ...readRights(scope, sessions) });
    say("Narrowed.");
    onDone();
    onClose();
  };
  return (
    <Dialog title="Narrow this token" onClose={onClose}>
      <p>
        Programs that use <Name text={token.name} /> must connect again. Rights that you take away cannot be
        given back.
      </p>
      <SchemaForm action="Narrow" fields={[rights(most, most)]} onSubmit={narrow} onClose={onClose}>
        <Sessions value={sessions} placeholder="No change" onInput={setSessions} />
      </SchemaForm>
    </Dialog>
  );
}
