// Owns the tab about rights: the tools of a session, and what one session may do to another, with the rules.
// RG1: the address says what is asked: `#/operations/rights/<session>`, or with a line break between the two
//      that are compared.

import { has, may } from "../gateway.ts";
import { go } from "../route.ts";
import { MayCard } from "./may.tsx";
import "./rows.css";
import "./rights.css";
import { ToolsCard } from "./session-tools.tsx";

const BETWEEN = "\n";

export function RightsTab({ about = "" }: { about: string | undefined }) {
  const [viewer = "", target = ""] = about.split(BETWEEN);
  const choose = (one: string, other: string): void => {
    const text = other === "" ? one : `${one}${BETWEEN}${other}`;
    go({ view: "operations", tab: "rights", about: text || undefined }, true);
  };
  return (
    <div class="rights">
      {may("operator.admin") && has("access.explain") && (
        <MayCard viewer={viewer} target={target} onChoose={choose} />
      )}
      <ToolsCard sessionKey={viewer} onChoose={(key) => choose(key, target)} />
    </div>
  );
}
