// A redactor for tests. It knows no secret values.

import { Redactor } from "../../src/core/text/redact/redact.ts";

export const plainRedactor = new Redactor([]);
