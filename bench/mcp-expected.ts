// Lists the scenarios of MCP's conformance suite that do not pass, with the reason. A reason is a cell of a
// table.

const OWN_MODELS =
  "optional in the protocol and deprecated in 2026-07-28 (SEP-2577): no tool of the gateway asks for the " +
  "models of its clients";

/** Reasons, by the part of the suite and the name of the scenario. */
export const EXPECTED: Readonly<Record<string, string>> = {
  "server tools-call-sampling": OWN_MODELS,
};
