// Defines the methods about labels: the texts from outside and the private ones that sessions have read.

import { type LabelDecision, type Labels, SINKS, type TracedMark } from "../../core/shapes/labels.ts";
import { LABEL_MODES } from "../../core/shapes/settings/settings.ts";
import { about, declared, list, object, oneOf, text } from "../schema.ts";
import { ADMIN, count, idempotencyKey, type MethodSpec, name, READ } from "./parts.ts";

const session = about(name, "Key of the session.");

export const LABEL_METHODS = {
  "labels.list": {
    scope: READ,
    summary: "Lists decisions about calls of runs that had read content from outside, newest first.",
    params: object(
      {},
      {
        sessionKey: about(name, "Only decisions about runs of this session."),
        chainId: about(name, "Only decisions about runs of this chain."),
        days: about(count(1), "Only decisions of this many days."),
        limit: about(count(1), "Maximum number of decisions. Default 100, at most 1000."),
      },
    ),
    result: object({ decisions: list(declared<LabelDecision>("LabelDecision"), "Newest first.") }),
  },
  "labels.explain": {
    scope: READ,
    summary:
      "Returns the labels of a session, and with `sink`, whether a call may have this effect, with the rule.",
    params: object(
      { sessionKey: session },
      {
        sink: about(oneOf(...SINKS), "Kind of the call."),
        to: about(name, "Destination: an address, a host, a chat, a tool, an agent or a session."),
      },
    ),
    result: object(
      {
        sessionKey: text(),
        labels: about(declared<Labels>("Labels"), "The labels that count, with the session's own."),
        mode: oneOf(...LABEL_MODES),
        readIn: list(
          declared<TracedMark>("TracedMark"),
          "Marks whose runs are known, with the session that read the text first and the way from there.",
        ),
      },
      {
        verdict: about(oneOf("free", "ask", "deny", "watch"), "The answer for `sink`."),
        why: text("The setting or the rule that decides."),
      },
    ),
    errors: ["invalid_argument", "invalid_session_key", "not_visible", "session_not_found"],
  },
  "labels.release": {
    scope: ADMIN,
    part: "operator.approvals",
    everySession: true,
    summary: "Removes the labels of a session. Texts that it reads from then on are labelled again.",
    params: object({ sessionKey: session }, { idempotencyKey }),
    result: object({ ok: oneOf(true), sessionKey: text() }),
    errors: ["invalid_session_key", "not_visible", "session_not_found"],
  },
} as const satisfies Record<string, MethodSpec>;
