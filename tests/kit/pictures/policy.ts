// The pictures of docs/POLICY.md: each gate as the questions that it asks, in the order of the code.

import type { Gate } from "./decision.ts";

const PASSES = { means: "allowed", verdict: "good" } as const;

export const TOKEN: Gate = {
  title: "Tokens: may this request be made? (gateway/auth.ts, dispatch.ts; core/visibility.ts)",
  questions: [
    {
      asks:
        "Is the Host or Origin one that the gateway knows? (loopback, gateway.allowedHosts, " +
        "allowedOrigins)",
      when: "no",
      means: "origin_denied",
      verdict: "bad",
    },
    {
      asks: "Were there more wrong tokens from this address than ten, and one each six seconds?",
      when: "yes",
      means: "rate_limited",
      verdict: "bad",
    },
    {
      asks: "Is there a token, and is it one of gateway.auth, or a device's or session's pass?",
      when: "no",
      means: "unauthorized",
      verdict: "bad",
    },
    {
      asks:
        "Does the method fit the kind of connection? (nodes call node methods only, operators " +
        "all others)",
      when: "no",
      means: "missing_scope",
      verdict: "bad",
    },
    {
      asks: "Does one of its scopes contain the one that the method needs? (read < write < admin)",
      when: "no",
      means: "missing_scope, naming the scope",
      verdict: "bad",
    },
    {
      asks:
        "Is it about all sessions (usage, log, figures, configuration, pairing), and does the " +
        "token cover only some?",
      when: "yes",
      means: "missing_scope: for tokens that cover every session",
      verdict: "bad",
    },
    {
      asks:
        "Does a pattern of gateway.auth.tokens[].sessions match the session's key? Without " +
        "patterns: every key",
      when: "no",
      means: "not_visible, whether or not there is such a session",
      verdict: "bad",
    },
    {
      asks: "Does it act as a session? (--as, or a pass, which may call four methods only)",
      when: "yes",
      means: "then that session's own sight and tools count as well: the next pictures",
      verdict: "good",
    },
  ],
  else: PASSES,
};

export const VISIBILITY: Gate = {
  title: "Visibility and agent to agent: may session A touch session B? (core/visibility.ts)",
  questions: [
    {
      asks: "Is B the key `unknown`, or archived?",
      when: "yes",
      means: "not_visible: no setting shows it to an agent",
      verdict: "bad",
    },
    { asks: "Is B A itself?", when: "yes", means: "allowed: its own session", verdict: "good" },
    {
      asks:
        "What counts for A is tools.sessions.visibility; at most `tree` if A is sandboxed with " +
        "sessionToolsVisibility: spawned, or its requester is gone. Is that `tree` or wider, and " +
        "did A spawn B, at any depth?",
      when: "yes",
      means: "allowed: its tree, whatever agent B is of",
      verdict: "good",
    },
    {
      asks: "Is B of A's agent, and the mode `agent` or `all`?",
      when: "yes",
      means: "allowed: same agent, if what spawned A sees B too (last question)",
      verdict: "good",
    },
    {
      asks: "Is the mode `all`?",
      when: "no",
      means: "not_visible, naming the setting that would show it",
      verdict: "bad",
    },
    {
      asks: "Is tools.agentToAgent enabled, and does its allow list match both agents (or is it empty)?",
      when: "no",
      means: "agent_to_agent, naming what is missing",
      verdict: "bad",
    },
    {
      asks: "Was A spawned, and does the session that spawned it not see B?",
      when: "yes",
      means: "refused as its requester would be: a child sees no more (I13)",
      verdict: "bad",
    },
  ],
  else: { means: "allowed: for list, read, search, send, status alike", verdict: "good" },
};

export const TOOLS: Gate = {
  title: "Tool policy: has this session the tool? (core/tool-policy.ts)",
  questions: [
    {
      asks:
        "Does a deny match the name: of `tools`, of its agent, of `tools.subagents.tools` (a " +
        "sub-agent), of `tools.sandbox.tools` (sandboxed)?",
      when: "yes",
      means: "tool_denied, naming the list and the pattern",
      verdict: "bad",
    },
    {
      asks: "Is it sessions_spawn, and the sub-agent as deep as maxSpawnDepth?",
      when: "yes",
      means: "tool_denied: whatever is allowed elsewhere",
      verdict: "bad",
    },
    {
      asks:
        "Is it a session tool, the session a sub-agent, and tools.subagents.tools.allow empty? " +
        "(Those that may spawn keep sessions_spawn, _list, _history, agents_list, subagents.)",
      when: "yes",
      means: "tool_denied: sub-agents have no session tools",
      verdict: "bad",
    },
    {
      asks:
        "Is it a tool of an MCP server that does not list the agent, or of a server or node that " +
        "sandboxed sessions may not use?",
      when: "yes",
      means: "tool_denied, naming the server's key",
      verdict: "bad",
    },
    {
      asks: "Is there a non-empty allow among all these that does not list it?",
      when: "yes",
      means: "tool_denied, naming that list",
      verdict: "bad",
    },
    {
      asks:
        "Was the session spawned? The same questions for who spawned it, as that stands now, and " +
        "for who spawned that one. Does one of them lack it?",
      when: "yes",
      means: "tool_denied: a child has what all above it have (I13)",
      verdict: "bad",
    },
  ],
  else: { means: "the session has it", verdict: "good" },
};

export const SANDBOX: Gate = {
  title: "Sandbox: are this session's tools contained? (core/sandbox-policy.ts)",
  questions: [
    {
      asks: "Is its agent's sandbox.mode `all`; or `non-main`, and it is no main session?",
      when: "yes",
      means: "contained",
      verdict: "good",
    },
    {
      asks: "Was it agreed so at its spawn (sandbox: require, or a requester that was sandboxed)?",
      when: "yes",
      means: "contained, whatever the settings say now",
      verdict: "good",
    },
    {
      asks: "Is a session contained that spawned it, at any depth, as things stand now?",
      when: "yes",
      means: "contained: a child is never freer (I13)",
      verdict: "good",
    },
    {
      asks:
        "Is the one that spawned the first of them gone, and would that one's agent contain its " +
        "sub-agents?",
      when: "yes",
      means: "contained",
      verdict: "good",
    },
  ],
  else: { means: "runs bare: exec does what the gateway's user may", verdict: "bad" },
};

export const SEND_POLICY: Gate = {
  title: "Send policy: may text go into, or leave, this session? (core/send-policy.ts)",
  questions: [
    {
      asks: "Is the session's own sendPolicy `allow`? (/send, sessions.patch)",
      when: "yes",
      means: "allowed, whatever the rules say",
      verdict: "good",
    },
    { asks: "Is it `deny`?", when: "yes", means: "send_denied: an operator can clear it", verdict: "bad" },
    {
      asks:
        "Does a rule of session.sendPolicy with action deny match channel and type of chat? A " +
        "thread is also of the type that it stands in",
      when: "yes",
      means: "send_denied, naming the rule",
      verdict: "bad",
    },
    { asks: "Does a rule with action allow match?", when: "yes", means: "allowed", verdict: "good" },
    {
      asks: "Is session.sendPolicy.default `deny`?",
      when: "yes",
      means: "send_denied, naming the default",
      verdict: "bad",
    },
  ],
  else: PASSES,
};

export const SENDING: Gate = {
  title: "sessions_send, whole: what a message of an agent meets, in this order",
  questions: [
    {
      asks: "Was this very call accepted before a crash?",
      when: "yes",
      means: "not judged again: it waits on for its answer",
      verdict: "good",
    },
    { asks: "Has the session the tool?", when: "no", means: "tool_denied", verdict: "bad" },
    {
      asks: "May it see the target? (visibility, agent to agent)",
      when: "no",
      means: "not_visible, agent_to_agent, session_not_found",
      verdict: "bad",
    },
    {
      asks: "Are the two in a conversation, and is this run a turn of it?",
      when: "yes",
      means: "open_flow: the reply itself is the message",
      verdict: "bad",
    },
    { asks: "Does the target's send policy allow it?", when: "no", means: "send_denied", verdict: "bad" },
    {
      asks: "Has the run that sends been stopped meanwhile?",
      when: "yes",
      means: "run_aborted: nothing is sent",
      verdict: "bad",
    },
    {
      asks: "Is the target archived, or its queue full (session.queueMax)?",
      when: "yes",
      means: "session_archived, queue_full",
      verdict: "bad",
    },
    {
      asks: "Is the conversation past maxHops, maxChainRuns, or its budget?",
      when: "yes",
      means: "chain_limit",
      verdict: "bad",
    },
    {
      asks: "Would waiting close a circle?",
      when: "yes",
      means: "wait_cycle, naming the circle; with timeoutSeconds: 0 it may be sent",
      verdict: "bad",
    },
  ],
  else: { means: "accepted: message, run, flow and wait are on disk", verdict: "good" },
};

export const SPAWNING: Gate = {
  title: "sessions_spawn: may this be spawned, and what will it be? (core/spawn-policy.ts)",
  questions: [
    {
      asks: "Is the requester as deep as agents.defaults.subagents.maxSpawnDepth?",
      when: "yes",
      means: "spawn_denied (its tool is withheld besides)",
      verdict: "bad",
    },
    {
      asks: "Is the agent the requester's own, or in its subagents.allowAgents?",
      when: "no",
      means: "spawn_denied, with those that are; agent_not_found",
      verdict: "bad",
    },
    {
      asks: "Do mode, thread and the channel fit each other; are model, thinking level and time limit valid?",
      when: "no",
      means: "spawn_denied, invalid_argument, invalid_model, invalid_thinking",
      verdict: "bad",
    },
    {
      asks: "Is the requester sandboxed, or sandbox: require asked for, and would the child run bare?",
      when: "yes",
      means: "spawn_denied, with agents that are sandboxed",
      verdict: "bad",
    },
    {
      asks: "Are maxChildren of the requester's sub-agents unfinished?",
      when: "yes",
      means: "too_many_children",
      verdict: "bad",
    },
    {
      asks: "Do attachments break a rule (names, sizes, an ACP agent)?",
      when: "yes",
      means: "refused whole: no file and no session is left",
      verdict: "bad",
    },
    {
      asks:
        "In the transaction: is the requester gone or archived, are maxChildren reached " +
        "meanwhile, is the chain at a limit?",
      when: "yes",
      means: "refused, and undone: no session is left",
      verdict: "bad",
    },
  ],
  else: {
    means: "accepted: model and containment are fixed, tools and sight are worked out at every run",
    verdict: "good",
  },
};

export const CHANNEL: Gate = {
  title:
    "Channels: is what somebody writes answered? (core/inbound-policy.ts; Direct, Group: asked of those alone)",
  questions: [
    {
      asks:
        "Direct chat: is dmPolicy `disabled`? Group: is groupPolicy `disabled`, or the group's " +
        "entry not enabled?",
      when: "yes",
      means: "ignored",
      verdict: "bad",
    },
    { asks: "Direct: is the sender in commands.owners?", when: "yes", means: "answered", verdict: "good" },
    {
      asks: "Group: is it in `groups`, or groupPolicy `open`, or the sender in groupAllowFrom or an owner?",
      when: "no",
      means: "ignored",
      verdict: "bad",
    },
    {
      asks: "Did an operator block the sender?",
      when: "yes",
      means: "ignored (owners are not)",
      verdict: "bad",
    },
    {
      asks: "Direct: is dmPolicy `open`, or the sender in allowFrom, or let in by pairing?",
      when: "no",
      means: "allowlist: ignored; pairing: gets a code, which an operator may approve",
      verdict: "bad",
    },
    {
      asks:
        "Group: is the sender outside the group's allowFrom, or the agent not named where " +
        "requireMention holds?",
      when: "yes",
      means: "ignored",
      verdict: "bad",
    },
  ],
  else: { means: "answered: kept in the inbox, becomes a run", verdict: "good" },
};
