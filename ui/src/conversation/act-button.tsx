// A button that acts once.

import type { ButtonHTMLAttributes } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../parts/button.tsx";
import { complain } from "../parts/notices.tsx";

/** `act`: is not called again, unless it fails. For another action, the button needs another `key`. */
export function ActButton(props: ButtonHTMLAttributes & { text: string; act: () => Promise<unknown> }) {
  const { act, ...attributes } = props;
  const [begun, setBegun] = useState(false);
  const begin = (): void => {
    setBegun(true);
    act().catch((error: unknown) => {
      setBegun(false);
      complain(error);
    });
  };
  return <Button {...attributes} aria-disabled={begun} onClick={() => begun || begin()} />;
}
