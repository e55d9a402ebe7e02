// Owns the redactor of tests that plant no secret of their own: it knows no value.

import { Redactor } from "../../src/core/text/redact/redact.ts";

export const plainRedactor = new Redactor([]);
