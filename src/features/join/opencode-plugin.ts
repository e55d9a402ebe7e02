// Generates the plugin that wakes a window of opencode: the plugin waits with `parley inbox` while the window
// is open, and sends the messages to the window's last conversation as its next prompt.
// OP1: a conversation keeps its agent and model, because a prompt that does not name them would leave a
//      read-only mode.
// OP2: sub-agents of the window get no messages.
// OP3: if opencode refuses a prompt, for example because its conversation was deleted, the messages are sent
//      at the start or the end of the next turn.

/** Returns the text of the plugin. `hook`: words that start the waiting command. */
export function openCodePlugin(hook: readonly string[]): string {
  return `// Gives messages of Parley to this window. Undo: npx parley-gateway leave opencode
import { spawn } from "node:child_process";

const [command, ...args] = ${JSON.stringify(hook, null, 2)};

export const Parley = async ({ client }) => {
  let conversation;
  let waiting;
  let unsent = [];
  const tell = async () => {
    const texts = unsent;
    if (texts.length === 0 || conversation === undefined) return;
    unsent = [];
    const { id, agent, model } = conversation;
    const parts = [{ type: "text", text: texts.join("\\n\\n") }];
    try {
      const sent = await client.session.promptAsync({ path: { id }, body: { agent, model, parts } });
      if (sent?.error === undefined) return;
    } catch {}
    unsent = [...texts, ...unsent];
  };
  const wait = () => {
    if (waiting !== undefined) return;
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"] });
    waiting = child;
    let text = "";
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (piece) => {
      text += piece;
    });
    child.on("error", () => {});
    child.on("close", () => {
      waiting = undefined;
      if (text !== "") unsent.push(text);
      tell();
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify({ session_id: conversation?.id }));
  };
  return {
    "chat.message": async ({ sessionID: id, agent, model }) => {
      const { data } = await client.session.get({ path: { id } });
      if (data?.parentID !== undefined) return;
      conversation = { id, agent, model };
      tell();
      wait();
    },
    event: async ({ event }) => {
      if (event.type !== "session.idle" || event.properties.sessionID !== conversation?.id) return;
      tell();
      wait();
    },
    dispose: async () => waiting?.kill(),
  };
};
`;
}
