// The dialogs that can be opened in every view.

import { useEffect, useRef } from "preact/hooks";
import { Dispatch } from "../agents/dispatch.tsx";
import { MessageSearch } from "../conversation/search.tsx";
import { overlay } from "../overlay.ts";
import { route } from "../route.ts";
import { NewSession } from "../sessions/new-session.tsx";
import { KeysDialog } from "./keys.tsx";
import { Palette } from "./palette.tsx";

const SHOWN = {
  palette: Palette,
  keys: KeysDialog,
  "new-session": NewSession,
  messages: MessageSearch,
  dispatch: Dispatch,
};

function close(): void {
  overlay.value = undefined;
}

export function Overlays() {
  // Not the address, because a search in the view enters it a moment after the typing.
  const at = route.value;
  const from = useRef(at);
  useEffect(() => {
    // The reader has followed a link, or gone back.
    if (from.current !== at) close();
  }, [at]);
  const Shown = overlay.value === undefined ? undefined : SHOWN[overlay.value];
  return Shown === undefined ? null : <Shown onClose={close} />;
}
