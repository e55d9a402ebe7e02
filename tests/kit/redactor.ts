// A redactor for tests without secrets: it knows no value.

import { Redactor } from "../../src/core/text/redact/redact.ts";

export const plainRedactor = new Redactor([]);
