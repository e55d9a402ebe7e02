// Gives the user a file to save.

import { after } from "../../clock.ts";

const KEPT_MS = 60_000;

export function download(name: string, content: string | Uint8Array<ArrayBuffer>, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // Keep the address valid for some time, because some browsers read the file only after the click.
  after(KEPT_MS, () => URL.revokeObjectURL(url));
}
