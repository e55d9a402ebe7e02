// A button that acts once.

import type { ButtonHTMLAttributes } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../parts/button.tsx";
import { complain } from "../parts/notices.tsx";

interface ActProps extends ButtonHTMLAttributes {
  readonly text: string;
  /** Names the action. When it changes, the button can be pressed again. */
  readonly of?: string;
  /** Is not called again, unless it fails. */
  readonly act: () => Promise<unknown>;
}

export function ActButton({ of = "", act, disabled, ...attributes }: ActProps) {
  const [begun, setBegun] = useState<string>();
  const begin = (): void => {
    setBegun(of);
    act().catch((error: unknown) => {
      setBegun(undefined);
      complain(error);
    });
  };
  const isOff = disabled === true || begun === of;
  return <Button {...attributes} aria-disabled={isOff} onClick={() => isOff || begin()} />;
}
