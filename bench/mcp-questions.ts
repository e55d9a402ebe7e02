// An MCP server behind a gateway whose tools ask the person, or a model, for what the official conformance
// suite wants to see asked. Speaks over standard input and output.

import { inputRequired, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const VALUES = ["option1", "option2", "option3"];
const TITLED = [
  { const: "value1", title: "First" },
  { const: "value2", title: "Second" },
];

/** The question of each tool, as the properties of its form. */
const TOOLS: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  test_elicitation: {
    username: { type: "string", description: "User's response" },
    email: { type: "string", description: "User's email address" },
  },
  test_elicitation_sep1034_defaults: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
  test_elicitation_sep1330_enums: {
    untitledSingle: { type: "string", enum: VALUES },
    titledSingle: { type: "string", oneOf: TITLED },
    legacyEnum: { type: "string", enum: ["opt1", "opt2"], enumNames: ["Option One", "Option Two"] },
    untitledMulti: { type: "array", items: { type: "string", enum: VALUES } },
    titledMulti: { type: "array", items: { anyOf: TITLED } },
  },
  confirm_delete: { confirm: { type: "boolean" } },
  multi_input: { name: { type: "string" }, confirm: { type: "boolean" } },
};

serveStdio(() => {
  const server = new McpServer({ name: "questions", version: "1" });
  for (const [name, properties] of Object.entries(TOOLS))
    server.registerTool(name, {}, ({ mcpReq }) => {
      const { inputResponses } = mcpReq;
      if (inputResponses !== undefined)
        return { content: [{ type: "text", text: JSON.stringify(inputResponses) }] };
      const requestedSchema = { type: "object", properties };
      const params = { message: `Please answer ${name}.`, requestedSchema } as never;
      return inputRequired({ inputRequests: { question: { method: "elicitation/create", params } } });
    });
  server.registerTool("test_sampling", {}, ({ mcpReq: { inputResponses } }) => {
    if (inputResponses !== undefined)
      return { content: [{ type: "text", text: JSON.stringify(inputResponses) }] };
    const messages = [
      { role: "user" as const, content: { type: "text" as const, text: "Test prompt for sampling" } },
    ];
    const params = { messages, maxTokens: 100 };
    return inputRequired({ inputRequests: { prompt: { method: "sampling/createMessage", params } } });
  });
  return server;
});
