// Implements the offline model `offline/rehearsal`: a model port that needs no key and no network. Its tool
// calls are real, and run through the same loop as any other model's.
// O1: it is deterministic: the same request always gets the same message.
// O3: it recognises the current step by the runtime's heading in the system prompt, never by the text of a
// message.

import { HEADING } from "../../core/rules/turn-rules.ts";
import {
  type Provenance,
  type ToolCallBlock,
  textOf,
  toolCallsOf,
  ZERO_USAGE,
} from "../../core/shapes/message.ts";
import type { World } from "../../world.ts";
import { sleep } from "../loop/abort.ts";
import { matchResults } from "../loop/result-matching.ts";
import { estimateTextTokens, estimateTokens, liveTranscript } from "../loop/view.ts";
import {
  type ModelOutcome,
  type ModelPort,
  type ModelRequest,
  OFFLINE_MODEL_ID,
  OFFLINE_PROVIDER,
  type WrittenMessage,
} from "../model/model.ts";
import {
  announcement,
  calculated,
  followUp,
  helpText,
  isFailure,
  isReport,
  isSmallTalk,
  keyLabelled,
  opinion,
  phrase,
  phraseAnnounced,
  phraseJobs,
  readResult,
  type ToolJson,
} from "./phrases.ts";
import { type Intent, type NamedSession, readSentence } from "./sentences.ts";

/** The model's next action. */
type Act =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "calls"; readonly calls: readonly Call[] }
  | { readonly kind: "wait"; readonly ms: number; readonly next: Act };

interface Call {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** A tool call of this turn, with its result. */
interface Done extends Call {
  readonly json: ToolJson;
}

/** The situation to which the model reacts. */
interface Scene {
  readonly input: string;
  /** Origin of the input, if the input is not from a person. */
  readonly source?: Provenance;
  /** True for the first message of the session. */
  readonly isFirst: boolean;
  readonly done: readonly Done[];
  readonly toolNames: readonly string[];
  readonly agentId: string;
  readonly sessionKey: string;
  readonly system: string;
}

const CHUNKS = 4;

/** `thinkMs`: time before each answer. */
export function rehearsalPort(world: World, thinkMs = 0): ModelPort {
  return {
    async call(request, onText, signal): Promise<ModelOutcome> {
      let act = decide(sceneOf(request));
      const waitMs = thinkMs + (act.kind === "wait" ? act.ms : 0);
      if (waitMs > 0 && !(await sleep(world.clock, waitMs, signal))) return { kind: "aborted" };
      if (act.kind === "wait") act = act.next;
      if (act.kind === "wait") throw new Error("one sentence has two waits");
      const text = act.kind === "text" ? act.text : "";
      let offset = 0;
      for (const piece of piecesOf(text)) {
        await Promise.resolve();
        if (signal.aborted) return { kind: "aborted" };
        onText({ offset, text: piece });
        offset += piece.length;
      }
      return { kind: "message", message: messageOf(world, request, act) };
    },
  };
}

function piecesOf(text: string): string[] {
  const words = text.split(/(?<=\s)/);
  const size = Math.max(1, Math.ceil(words.length / CHUNKS));
  const starts = Array.from({ length: Math.ceil(words.length / size) }, (_, at) => at * size);
  return text === "" ? [] : starts.map((start) => words.slice(start, start + size).join(""));
}

function messageOf(world: World, request: ModelRequest, act: Exclude<Act, { kind: "wait" }>): WrittenMessage {
  const { messages } = liveTranscript(request.entries);
  const input =
    estimateTextTokens(request.system) + messages.reduce((sum, one) => sum + estimateTokens(one), 0);
  const content: WrittenMessage["content"] =
    act.kind === "text"
      ? [{ type: "text", text: act.text }]
      : act.calls.map(
          (call, at): ToolCallBlock => ({
            type: "toolCall",
            id: `call_${messages.length}_${at}`,
            name: call.name,
            arguments: call.args,
          }),
        );
  const output = estimateTextTokens(JSON.stringify(content));
  return {
    role: "assistant",
    content,
    timestamp: world.clock.now(),
    api: OFFLINE_MODEL_ID,
    provider: OFFLINE_PROVIDER,
    model: OFFLINE_MODEL_ID,
    usage: { ...ZERO_USAGE, input, output, totalTokens: input + output },
    stopReason: act.kind === "calls" ? "toolUse" : "stop",
  };
}

function sceneOf(request: ModelRequest): Scene {
  const { messages } = liveTranscript(request.entries);
  const inputAt = messages.findLastIndex((message) => message.role === "user");
  const input = messages[inputAt];
  const { system } = request;
  const answers = messages.slice(inputAt + 1);
  const results = matchResults(answers);
  return {
    input: input === undefined ? "" : textOf(input),
    ...(input?.role === "user" && input.provenance !== undefined ? { source: input.provenance } : {}),
    isFirst: messages.findIndex((message) => message.role === "user") === inputAt,
    done: answers.flatMap((message) =>
      toolCallsOf(message).flatMap((call, at) => {
        const result = results.get(message)?.get(at);
        if (result === undefined) return [];
        return [{ name: call.name, args: call.arguments, json: readResult(textOf(result)) }];
      }),
    ),
    toolNames: request.tools.map((tool) => tool.name),
    agentId: /^You are the agent "([^"]+)"/m.exec(system)?.[1] ?? "main",
    sessionKey: /^Session: (.+)$/m.exec(system)?.[1] ?? "main",
    system,
  };
}

function decide(scene: Scene): Act {
  const lines = scene.system.split("\n");
  const heading = lines.find((line) => Object.values<string>(HEADING).includes(line));
  const intent = readSentence(scene.input, scene.agentId);
  switch (heading) {
    case HEADING.reply:
      return say(replyStep(scene));
    case HEADING.announce: {
      const request = quotedAfter(lines, "Original request:");
      const latest = quotedAfter(lines, "Latest reply:");
      const firstReply = quotedAfter(lines, "First reply (round 1):");
      const idle = isSmallTalk(request) || isReport(firstReply);
      return say(idle ? "ANNOUNCE_SKIP" : announcement(request, latest));
    }
    case HEADING.subagentAnnounce: {
      const result = quotedAfter(lines, "Your result so far:");
      const nothing = "the task is done, and there is nothing to show for it.";
      return say(`Result: ${result.trim() === "" ? nothing : result}`);
    }
    case HEADING.subagent:
      return subagentStep(scene);
    case HEADING.message:
      return intent === undefined ? say(answer(scene)) : perform(scene, intent);
    default:
      if (isAnnouncement(scene)) return say(phraseAnnounced(scene.input));
      if (intent !== undefined) return perform(scene, intent);
      return say(calculated(scene.input) ?? helpText(scene.toolNames));
  }
}

function say(text: string): Act {
  return { kind: "text", text };
}

function answer(scene: Scene): string {
  if (isSmallTalk(scene.input)) return `Hello from ${scene.agentId}.`;
  return calculated(scene.input) ?? opinion(scene.input);
}

/** Asks one question, answers one, then stays silent, so that every exchange ends. */
function replyStep(scene: Scene): string {
  const turn = Number(/^This is reply turn (\d+) /m.exec(scene.system)?.[1] ?? "3");
  if (turn === 1) return isReport(scene.input) ? "REPLY_SKIP" : followUp();
  return turn === 2 ? opinion(scene.input) : "REPLY_SKIP";
}

/** Does a sub-agent's task; later messages are results of its own sub-agents, or questions. */
function subagentStep(scene: Scene): Act {
  if (isAnnouncement(scene) && !scene.isFirst) return say(phraseAnnounced(scene.input));
  // The runtime lists the attached files after the task.
  const [task = ""] = scene.input.split("\n\nFiles in .parley/");
  const intent = readSentence(task, scene.agentId);
  return intent === undefined ? say(answer({ ...scene, input: task })) : perform(scene, intent);
}

/**
 * Returns whether a message announces a sub-agent's result. A sub-agent's first message of this kind is its
 * task.
 */
function isAnnouncement({ source }: Scene): boolean {
  return source?.kind === "inter_session" && source.sourceTool === "sessions_spawn";
}

function quotedAfter(lines: readonly string[], title: string): string {
  const from = lines.indexOf(title) + 1;
  const rest = lines.slice(from);
  const end = rest.findIndex((line) => !line.startsWith("| "));
  return rest
    .slice(0, end < 0 ? rest.length : end)
    .map((line) => line.slice(2))
    .join("\n");
}

function perform(scene: Scene, intent: Intent): Act {
  switch (intent.kind) {
    case "say":
      return say(intent.text);
    case "help":
      return say(helpText(scene.toolNames));
    case "who":
      return say(`I am ${scene.agentId}, in session ${scene.sessionKey}, on the offline rehearsal model.`);
    case "tool": {
      const last = scene.done.at(-1);
      if (last !== undefined) return say(phrase(intent.tool, last.json));
      return (
        lacks(scene, intent.tool) ?? { kind: "calls", calls: [{ name: intent.tool, args: intent.args }] }
      );
    }
    case "jobs": {
      if (scene.done.length > 0) return say(phraseJobs(scene.done.map((done) => done.json)));
      const calls = intent.jobs.map((args) => ({ name: "sessions_spawn", args }));
      return lacks(scene, "sessions_spawn") ?? { kind: "calls", calls };
    }
    case "session":
      return intent.targets.length === 1 ? performOne(scene, intent) : performMany(scene, intent);
    case "wait": {
      const next = intent.next === undefined ? say("done") : perform(scene, intent.next);
      // The wait comes before the first call, so it is over if there are results.
      const flat = next.kind === "wait" ? next.next : next;
      return scene.done.length > 0 ? flat : { kind: "wait", ms: intent.seconds * 1000, next: flat };
    }
  }
}

function lacks(scene: Scene, tool: string): Act | undefined {
  return scene.toolNames.includes(tool) ? undefined : say(`I have no tool ${tool} in this session.`);
}

type SessionIntent = Extract<Intent, { kind: "session" }>;

function callFor(intent: SessionIntent, target: NamedSession): Call {
  const where = target.key === undefined ? { label: target.name } : { sessionKey: target.key };
  return { name: intent.tool, args: { ...where, ...intent.args } };
}

/** Calls several sessions in parallel. */
function performMany(scene: Scene, intent: SessionIntent): Act {
  const { targets, tool } = intent;
  if (scene.done.length === 0) {
    const calls = targets.map((target) => callFor(intent, target));
    return lacks(scene, tool) ?? { kind: "calls", calls };
  }
  return say(scene.done.map((done, at) => phrase(tool, done.json, targets[at])).join("\n"));
}

/** Calls one session by the given name. If there is no such session, looks for it by label. */
function performOne(scene: Scene, intent: SessionIntent): Act {
  const { tool } = intent;
  const target = intent.targets[0] as NamedSession;
  const missing = lacks(scene, tool);
  if (missing !== undefined) return missing;
  const lookUp: Act = {
    kind: "calls",
    calls: [{ name: "sessions_list", args: { search: target.name, limit: 20 } }],
  };
  const mayLookUp = scene.toolNames.includes("sessions_list");
  const last = scene.done.at(-1);
  if (last === undefined) {
    const byLabel = target.key === undefined && tool !== "sessions_send";
    return byLabel && mayLookUp ? lookUp : { kind: "calls", calls: [callFor(intent, target)] };
  }
  if (last.name === "sessions_list") {
    const key = keyLabelled(last.json, target.name);
    if (key !== undefined) return { kind: "calls", calls: [callFor(intent, { ...target, key })] };
    const first = scene.done.find((done) => done.name === tool);
    if (first !== undefined) return say(phrase(tool, first.json, target));
    return say(`I see no session labelled "${target.name}".`);
  }
  const unknown = last.json.code === "not_visible" || last.json.code === "session_not_found";
  if (scene.done.length === 1 && target.guessed && unknown && isFailure(last.json) && mayLookUp)
    return lookUp;
  return say(phrase(tool, last.json, target));
}
