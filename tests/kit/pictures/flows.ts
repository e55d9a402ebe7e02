// The pictures of docs/FLOWS.md and docs/INVARIANTS.md: what happens, in which order, and what each
// transaction writes.

import type { Sequence } from "./sequence.ts";
import type { States } from "./states.ts";

export const RUN_STATES: States = {
  title: "The life of a run",
  width: 920,
  height: 480,
  states: [
    { x: 24, y: 150, width: 130, text: "accepted", kind: "mark" },
    { x: 240, y: 150, width: 120, text: "queued" },
    { x: 470, y: 150, width: 120, text: "running" },
    { x: 470, y: 330, width: 120, text: "waiting" },
    { x: 760, y: 60, width: 130, text: "ok", kind: "good" },
    { x: 760, y: 150, width: 130, text: "error", kind: "bad" },
    { x: 760, y: 240, width: 130, text: "timeout", kind: "bad" },
    { x: 760, y: 330, width: 130, text: "aborted", kind: "bad" },
  ],
  ways: [
    {
      points: [
        [154, 167],
        [238, 167],
      ],
      text: "place in\nthe lane",
      at: [166, 128],
    },
    {
      points: [
        [360, 160],
        [468, 160],
      ],
      text: "claimed:\nlane and slot",
      at: [368, 122],
    },
    {
      points: [
        [468, 176],
        [362, 176],
      ],
      text: "crash, or\nplanned stop",
      at: [370, 184],
      dashed: true,
    },
    {
      points: [
        [515, 184],
        [515, 328],
      ],
      text: "slot given back",
      at: [400, 240],
    },
    {
      points: [
        [545, 328],
        [545, 186],
      ],
      text: "answered, or\ndeadline",
      at: [556, 236],
    },
    {
      points: [
        [470, 347],
        [300, 347],
        [300, 186],
      ],
      text: "crash: the wait is a row,\nand goes on",
      at: [308, 356],
      dashed: true,
    },
    {
      points: [
        [590, 158],
        [640, 158],
        [640, 77],
        [758, 77],
      ],
      text: "final text",
      at: [646, 56],
    },
    {
      points: [
        [590, 167],
        [758, 167],
      ],
      text: "failed,\nor no budget",
      at: [648, 128],
    },
    {
      points: [
        [590, 176],
        [668, 176],
        [668, 257],
        [758, 257],
      ],
      text: "over its\ntime limit",
      at: [676, 200],
    },
    {
      points: [
        [590, 347],
        [758, 347],
      ],
      text: "stop, reset, delete\n(while it runs, too)",
      at: [606, 356],
    },
    {
      points: [
        [270, 150],
        [270, 40],
        [825, 40],
        [825, 58],
      ],
      text: "an append, and what another run reads, ends without a slot",
      at: [300, 20],
    },
    {
      points: [
        [265, 184],
        [265, 430],
        [825, 430],
        [825, 366],
      ],
      text: "stopped before it began",
      at: [280, 436],
    },
  ],
};

export const SEND: Sequence = {
  title: "sessions_send: a waited reply, the conversation, the announcement",
  columns: ["main's run", "research's lane", "main's lane", "outbox, channel"],
  steps: [
    { at: 0, does: "calls sessions_send to research" },
    {
      commit: 1,
      over: [0, 1],
      writes:
        "flow, question, research's run, and main's wait: one transaction; a circle of waits is refused in it",
    },
    { at: 0, does: "waits, without a slot" },
    { at: 1, does: "round 1: model and tools; answers" },
    {
      commit: 2,
      over: [0, 2],
      writes: "research's run ends; main's wait is answered; reply turn 1 is accepted into main's lane",
    },
    { from: 1, to: 0, say: "the reply, as the tool's result", back: true },
    { at: 0, does: "goes on, ends: main's people get its answer" },
    { at: 2, does: "reply turn 1, as a turn of main: says something" },
    { commit: 3, over: [1, 2], writes: "that turn ends; reply turn 2 is accepted into research's lane" },
    { at: 1, does: "reply turn 2: REPLY_SKIP" },
    { commit: 4, over: [1, 2], writes: "silence ends the loop; the announce step is accepted" },
    { at: 1, does: "announce step: tells its own people" },
    { commit: 5, over: [1, 3], writes: "the step ends, the flow is closed, the outbox row is pending" },
    { commit: 6, over: [3, 3], writes: "attempt noted, before it is made" },
    { at: 3, does: "the platform acknowledges: sent" },
  ],
};

export const SPAWN: Sequence = {
  title: "sessions_spawn: the job, and how its result comes back",
  columns: ["main's run", "the child's lane", "main's lane", "outbox, channel"],
  steps: [
    { at: 0, does: "calls sessions_spawn" },
    { at: 0, does: "attachments are written to disk, a thread is made" },
    {
      commit: 1,
      over: [0, 1],
      writes: "session, job, first run, chain count: one transaction; refused calls leave nothing",
    },
    { from: 1, to: 0, say: "accepted: runId, childSessionKey", back: true },
    { at: 0, does: "goes on at once, ends" },
    { at: 1, does: "task: model and tools; its own children wake it" },
    { commit: 2, over: [1, 1], writes: "the last run of the job ends; the announce step is accepted" },
    { at: 1, does: "announce step: sums its result up" },
    {
      commit: 3,
      over: [1, 3],
      writes:
        "job closed; the result is accepted into main's lane (append, or a turn that wakes main); outbox row; date of the clean-up",
    },
    { at: 2, does: "the result stands between two runs" },
    { at: 3, does: "main's people read it: sent" },
    {
      commit: 4,
      over: [1, 1],
      writes: "when the date is there and the announcement has left: archived, or deleted",
    },
  ],
};

export const INBOX: Sequence = {
  title: "A message from a channel, and the answer to it",
  columns: ["platform", "inbox", "session's lane", "outbox"],
  steps: [
    { from: 0, to: 1, say: "what somebody wrote" },
    { at: 1, does: "may it be answered? (channels' policy)" },
    { commit: 1, over: [1, 1], writes: "the message is kept, once, with the date at which its moment ends" },
    { from: 1, to: 0, say: "received", back: true },
    { at: 1, does: "more of the same sender joins it (debounceMs)" },
    {
      commit: 2,
      over: [1, 2],
      writes:
        "all of that moment becomes one run; the session and its route are written; the messages are settled",
    },
    { at: 2, does: "the run: model and tools" },
    {
      commit: 3,
      over: [2, 3],
      writes:
        "the run ends; the answer is a pending row for the place that was asked from, or skipped by the send policy",
    },
    { commit: 4, over: [3, 3], writes: "attempt noted, before it is made" },
    { from: 3, to: 0, say: "the text, part by part" },
    { from: 0, to: 3, say: "acknowledged", back: true },
    { commit: 5, over: [3, 3], writes: "sent; or again later; or failed, where operators see it" },
  ],
};

export const DELIVERY_STATES: States = {
  title: "The life of a delivery",
  width: 890,
  height: 340,
  states: [
    { x: 24, y: 120, width: 150, text: "run's end, or send", kind: "mark" },
    { x: 270, y: 120, width: 120, text: "pending" },
    { x: 270, y: 250, width: 120, text: "attempt open", kind: "soft" },
    { x: 720, y: 60, width: 130, text: "sent", kind: "good" },
    { x: 720, y: 150, width: 130, text: "failed", kind: "bad" },
    { x: 720, y: 250, width: 130, text: "dismissed", kind: "soft" },
    { x: 270, y: 40, width: 120, text: "skipped", kind: "soft" },
  ],
  ways: [
    {
      points: [
        [174, 137],
        [268, 137],
      ],
      text: "written",
      at: [190, 118],
    },
    {
      points: [
        [100, 120],
        [100, 57],
        [268, 57],
      ],
      text: "send policy\nsays no",
      at: [110, 64],
    },
    {
      points: [
        [310, 154],
        [310, 248],
      ],
      text: "noted first",
      at: [226, 190],
    },
    {
      points: [
        [350, 248],
        [350, 156],
      ],
      text: "again in 1 s … 5 min",
      at: [358, 190],
    },
    {
      points: [
        [390, 258],
        [520, 258],
        [520, 77],
        [718, 77],
      ],
      text: "acknowledged",
      at: [530, 56],
    },
    {
      points: [
        [390, 267],
        [600, 267],
        [600, 167],
        [718, 167],
      ],
      text: "refused, or\n24 h over",
      at: [608, 124],
    },
    {
      points: [
        [390, 276],
        [660, 276],
        [660, 176],
        [718, 176],
      ],
      text: "unknown after a crash, where the channel\ncan't tell two of the same apart",
      at: [400, 284],
      dashed: true,
    },
    {
      points: [
        [785, 184],
        [785, 248],
      ],
      text: "an operator",
      at: [792, 206],
    },
    {
      points: [
        [740, 150],
        [740, 113],
        [430, 113],
        [430, 130],
        [392, 130],
      ],
      text: "retry, by an operator",
      at: [540, 92],
      dashed: true,
    },
  ],
};

export const WAITS: States = {
  title: "A wait that would close a circle is refused (I7), and a waiting run holds no slot (I6)",
  width: 760,
  height: 290,
  states: [
    { x: 60, y: 60, width: 150, text: "main\nwaiting, no slot", kind: "soft" },
    { x: 320, y: 60, width: 150, text: "research\nwaiting, no slot", kind: "soft" },
    { x: 580, y: 60, width: 150, text: "archive\nrunning, one slot", kind: "good" },
    {
      x: 240,
      y: 210,
      width: 310,
      text: "refused: wait_cycle\nmain -> research -> archive -> main",
      kind: "bad",
    },
  ],
  ways: [
    {
      points: [
        [210, 85],
        [318, 85],
      ],
      text: "waits for",
      at: [232, 64],
    },
    {
      points: [
        [470, 85],
        [578, 85],
      ],
      text: "waits for",
      at: [492, 64],
    },
    {
      points: [
        [655, 110],
        [655, 226],
        [552, 226],
      ],
      text: "asks main, and would wait",
      at: [470, 150],
      dashed: true,
    },
    {
      points: [
        [240, 226],
        [135, 226],
        [135, 112],
      ],
      text: "the edge that is not made",
      at: [142, 150],
      dashed: true,
    },
  ],
};
