// Lists the scenarios of MCP's conformance suite that do not pass, with the reason. A reason is a cell of a
// table.

const PERSON = "an extension: the gateway signs in with a person's browser only";
const OWN_QUESTIONS = "the gateway asks the people of its clients only for permissions, in its own words";
const STREAMS =
  "one of its checks: the stream of a call begins before a tool refuses; no tool of the gateway does so";
const NO_HEADERS = "no tool of the gateway takes arguments from headers";
const TASKS =
  "the gateway's only tasks are sends without a reply in three seconds, which ask nothing and take longer";

/** Reasons, by the part of the suite and the name of the scenario. */
export const EXPECTED: Readonly<Record<string, string>> = {
  "client auth/dpop": PERSON,
  "client auth/dpop-nonce": PERSON,
  "server server-stateless": STREAMS,
  "server http-custom-header-server-validation": NO_HEADERS,
  "server tasks-lifecycle": TASKS,
  "server tasks-capability-negotiation": TASKS,
  "server tasks-wire-fields": TASKS,
  "server tasks-mrtr-input": TASKS,
  "server tasks-dispatch-and-envelope": TASKS,
  "server tasks-required-task-error": TASKS,
  "server tasks-mrtr-composition": TASKS,
  "server tools-call-sampling": OWN_QUESTIONS,
  "server tools-call-elicitation": OWN_QUESTIONS,
  "server elicitation-sep1034-defaults": OWN_QUESTIONS,
  "server elicitation-sep1330-enums": OWN_QUESTIONS,
};
