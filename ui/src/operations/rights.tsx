// The rights tab: the tools of a session, and its access to another session, with the rules that decide. The
// address contains the sessions: `#/operations/rights/<session>`, or two keys separated by a line break.

import { has, may } from "../gateway.ts";
import { go } from "../route.ts";
import { Access } from "./access.tsx";
import { SessionTools } from "./session-tools.tsx";

const BETWEEN = "\n";

export function RightsTab({ about = "" }: { about: string | undefined }) {
  const [viewer = "", target = ""] = about.split(BETWEEN);
  const choose = (one: string, other: string): void => {
    const text = other === "" ? one : `${one}${BETWEEN}${other}`;
    go({ view: "operations", tab: "rights", about: text || undefined }, true);
  };
  return (
    <>
      {may("operator.admin") && has("access.explain") && (
        <Access viewer={viewer} target={target} onChoose={choose} />
      )}
      <SessionTools key={viewer} sessionKey={viewer} onChoose={(key) => choose(key, target)} />
    </>
  );
}
