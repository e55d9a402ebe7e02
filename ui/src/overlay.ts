// Owns which dialog is open above the views. The code of these dialogs is in palette/.

import { signal } from "@preact/signals";

export const overlay = signal<"palette" | "keys" | "new-session" | "messages" | undefined>(undefined);
