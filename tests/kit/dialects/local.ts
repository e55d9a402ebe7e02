// The dialects of servers that people run themselves.

import { fieldsOf } from "../../../src/core/json.ts";
import { ALL, BLIND, type Dialect } from "./dialect.ts";
import {
  alternating,
  flatForm,
  listOf,
  noDeveloper,
  noEmpty,
  noFields,
  openAiForm,
  overflowFrom,
  plainContent,
  plainForm,
  plainSchemas,
  refused,
} from "./rules.ts";

export const LOCAL: readonly Dialect[] = [
  {
    ...{ id: "vllm", name: "vLLM", api: "openai-completions", can: ALL },
    baseUrl: "http://127.0.0.1:8000/v1",
    rules: [
      noDeveloper("Unexpected message role."),
      alternating("Conversation roles must alternate user/assistant/user/assistant/..."),
    ],
    word: flatForm,
    style: {
      thinking: "reasoning",
      id: (number) => `chatcmpl-tool-${"0123456789abcdef".repeat(2)}${number}`,
    },
    overflow: overflowFrom("vLLM, newer"),
    refusal: refused(
      400,
      flatForm('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', 400),
      "requires --enable-auto-tool-choice",
    ),
    quirks:
      "Start it with `--enable-auto-tool-choice` and a `--tool-call-parser`. Templates know only `system`.",
  },
  {
    ...{ id: "sglang", name: "SGLang", api: "openai-completions", can: ALL },
    baseUrl: "http://127.0.0.1:30000/v1",
    rules: [noDeveloper("Unexpected message role.")],
    word: flatForm,
    style: { given: "whole", reasons: { stop: "stop_str", calls: "tool_use" }, usage: "last" },
    overflow: overflowFrom("SGLang, with the output"),
    refusal: refused(400, flatForm("The model test has no chat template", 400), "has no chat template"),
    quirks: "Finish reasons of its own.",
  },
  {
    ...{ id: "lmstudio", name: "LM Studio", api: "openai-completions", can: ALL },
    baseUrl: "http://127.0.0.1:1234/v1",
    rules: [
      noDeveloper(
        "'messages' array must only contain objects with a 'role' field that is one of " +
          "'user', 'assistant', 'system', 'tool'. Got 'developer'",
      ),
    ],
    word: plainForm,
    style: {
      id: (number) => `83124577${number}`,
      between: "event: ping\ndata:\n\n",
      reasons: { calls: "stop" },
    },
    overflow: overflowFrom("LM Studio"),
    refusal: refused(
      404,
      plainForm("Failed to load model test. Error: insufficient system resources."),
      "insufficient system resources",
    ),
    quirks: "Errors are texts. Ids of calls are numbers.",
  },
  {
    ...{ id: "llamacpp", name: "llama.cpp server", api: "openai-completions", can: ALL },
    baseUrl: "http://127.0.0.1:8080/v1",
    rules: [
      noDeveloper("Unexpected message role."),
      alternating("Conversation roles must alternate user/assistant/user/assistant/..."),
      plainSchemas(
        ({ tools }) => listOf(tools).map((tool) => fieldsOf(tool.function).parameters),
        ["patternProperties"],
        (word) => `JSON schema conversion failed: Unrecognized schema: ${word}`,
      ),
    ],
    word: (message, code) => ({ error: { code, message, type: "invalid_request_error" } }),
    style: { given: "object", hasDone: false, staysOpen: true },
    overflow: overflowFrom("llama.cpp"),
    refusal: refused(
      503,
      { error: { code: 503, message: "The model could not be loaded", type: "unavailable_error" } },
      "The model could not be loaded",
    ),
    quirks: "Start it with `--jinja`. Some versions send arguments as objects, or keep the connection open.",
  },
  {
    ...{ id: "ollama", name: "Ollama", api: "openai-completions", can: ALL },
    baseUrl: "http://127.0.0.1:11434/v1",
    rules: [noDeveloper("invalid role: developer")],
    word: openAiForm,
    style: {
      ...{ index: "zero", given: "whole", thinking: "reasoning", reasons: { calls: "stop" } },
      id: (number) => `call_1a2b3c4${number}`,
    },
    overflow: overflowFrom("Ollama"),
    refusal: refused(
      400,
      openAiForm("registry.ollama.ai/library/test:latest does not support tools"),
      "does not support tools",
    ),
    quirks: "All calls have the index 0. Raise `num_ctx`, because a longer prompt is cut without a word.",
  },
  {
    ...{ id: "localai", name: "LocalAI", api: "openai-completions", can: ALL },
    baseUrl: "http://127.0.0.1:8081/v1",
    rules: [noDeveloper("role developer is unknown to the template")],
    word: (message, code) => ({ error: { code, message, type: "" } }),
    style: {
      ...{ index: "none", id: null, reasons: { calls: "stop", length: "max_tokens" }, usage: "last" },
    },
    overflow: overflowFrom("llama.cpp, newer"),
    refusal: refused(
      500,
      { error: { code: 500, message: "could not load model: rpc error: grpc service not ready", type: "" } },
      "could not load model",
    ),
    quirks: "Calls have neither index nor id.",
  },
  {
    ...{ id: "tgi", name: "TGI", api: "openai-completions", can: BLIND },
    baseUrl: "http://127.0.0.1:3000/v1",
    rules: [
      noDeveloper(
        "Failed to deserialize the JSON body into the target type: messages[0].role: " +
          "unknown variant `developer`",
        422,
      ),
      plainContent(
        "Failed to deserialize the JSON body into the target type: messages[0].content: " +
          "invalid type: sequence, expected a string",
      ),
      noFields(["stream_options"], (field) => `Input validation error: unknown field \`${field}\``, 422),
      noEmpty(() => "Template error: the message has no content", 422),
    ],
    word: (message) => ({ error: message, error_type: "validation" }),
    style: {
      ...{ index: "zero", given: "object", usage: "none" },
      reasons: { stop: "eos_token", calls: "eos_token" },
    },
    overflow: overflowFrom("TGI"),
    refusal: refused(
      424,
      { error: "Request failed during generation: CUDA out of memory", error_type: "generation" },
      "CUDA out of memory",
    ),
    quirks: "Content is a text. Arguments are objects. The finish reason is `eos_token`.",
  },
];
