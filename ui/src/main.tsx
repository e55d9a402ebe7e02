// Starts the page. A token has usually left the address already (early/request.ts).

import "./styles/parts.css";
import "./styles/shell.css";
import { render } from "preact";
import { showFirst } from "./first.ts";
import { resume, stage } from "./gateway.ts";
import { Boundary } from "./parts/failure.tsx";
import { Notices } from "./parts/notices.tsx";
import { Shell } from "./shell.tsx";
import { SignIn } from "./sign-in.tsx";
import { takeTokenFromAddress } from "./token.ts";
import { loadTypeface } from "./typeface.ts";

function Page() {
  return (
    <Boundary resetKey={stage.value.kind}>
      {stage.value.kind === "signed-in" ? <Shell /> : <SignIn />}
      <Notices />
    </Boundary>
  );
}

// A person may have pasted a link since that script ran.
takeTokenFromAddress();
resume();
// The reader may come back from the sign-in at an MCP server.
if (window.location.search.includes("state=mcp-"))
  void import("./operations/servers/sign-in.ts").then(({ endSignIn }) => endSignIn());
void showFirst();
const root = document.getElementById("page");
// Remove the loading text of index.html, or the rows that early.ts has drawn.
root?.replaceChildren();
if (root !== null) render(<Page />, root);
loadTypeface();
// Handle a link with another token that a person pastes while the page is open.
window.addEventListener("hashchange", () => {
  if (takeTokenFromAddress()) resume();
});
