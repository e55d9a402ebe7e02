// Shows buttons that allow a permission request for longer than once.

import type { PermissionQuestion, PermissionScope } from "../../../src/core/shapes/permission.ts";
import { ask } from "../gateway.ts";
import { complain, say } from "../parts/notices.tsx";

const WORDS: Readonly<Record<Exclude<PermissionScope, "once">, string>> = {
  session: "Allow in this session",
  always: "Always allow",
};

export function AllowLonger(props: {
  question: Pick<PermissionQuestion, "id" | "scopes">;
  onDone: () => unknown;
}) {
  const { id, scopes } = props.question;
  const allow = (scope: keyof typeof WORDS): void => {
    ask("permissions.answer", { id, decision: "allow", scope })
      .then(() => say("Allowed."), complain)
      .finally(props.onDone);
  };
  const longer = scopes.filter((scope) => scope !== "once");
  return longer.map((scope) => (
    <button key={scope} type="button" onClick={() => allow(scope)}>
      {WORDS[scope]}
    </button>
  ));
}
