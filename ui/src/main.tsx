// Owns the start of the page: the token out of the address, then what is seen.

import "./styles/base.css";
import "./styles/parts.css";
import "./styles/shell.css";
import { render } from "preact";
import { resume, stage } from "./gateway.ts";
import { Boundary } from "./parts/failure.tsx";
import { Notices } from "./parts/notices.tsx";
import { Shell } from "./shell.tsx";
import { SignIn } from "./sign-in.tsx";
import { takeTokenFromAddress } from "./token.ts";

function Page() {
  return (
    <Boundary resetKey={stage.value.kind}>
      {stage.value.kind === "signed-in" ? <Shell /> : <SignIn />}
      <Notices />
    </Boundary>
  );
}

takeTokenFromAddress();
resume();
const root = document.getElementById("page");
// It says that the page is being loaded.
root?.replaceChildren();
if (root !== null) render(<Page />, root);
// A link with another token, pasted into an open page.
window.addEventListener("hashchange", () => {
  if (takeTokenFromAddress()) resume();
});
