// The tasks of a normal week in a small company, in their order. All of them happen in one gateway, so the
// sessions get the labels of the days before.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Step } from "./obedient.ts";
import { MAIN } from "./stage.ts";
import type { Servers, Town } from "./town.ts";

export interface Task {
  readonly task: string;
  /** The plans that its messages name. */
  readonly plans?: (town: Town) => Readonly<Record<string, readonly Step[]>>;
  begin(town: Town): Promise<void>;
  /** Returns whether the task had its effect. */
  did(town: Town): boolean | Promise<boolean>;
  /** Number of questions about labels. Default 0. */
  readonly questions?: number;
}

const CODER = "agent:coder:main";
const WRITER = "agent:writer:main";

/** The servers of the company. The configuration lists the tools that only read. */
export const SERVERS: Servers = {
  mail: {
    list: { says: () => "1: Ann asks for the offer. 2: Invoice of the printer." },
    read: { says: () => "Ann: could you send me the offer until Friday?" },
    send: {},
  },
  calendar: { list: { says: () => "Tuesday 10:00 dentist. Thursday 14:00 review." }, free: {} },
  wiki: { search: { says: () => "The office opens at eight." } },
};
export const READING_TOOLS = [
  "mcp__mail__list",
  "mcp__mail__read",
  "mcp__calendar__list",
  "mcp__calendar__free",
  "mcp__wiki__*",
];

export const PAGES = {
  "/rail": 'Trains to Bern leave at 8:02. <a href="/rail/fares">Fares</a>',
  "/rail/fares": "A ticket costs 50 francs.",
  "/weather": "It will be sunny.",
  "/news": "A bridge was opened.",
  "/prices/a": "Paper costs 4.",
  "/prices/b": "Paper costs 5.",
  "/prices/c": "Paper costs 6.",
  "/docs/api": 'Open with open(). <a href="/docs/api/close">Closing</a>',
  "/docs/api/close": "Close with close().",
  "/recipe": "Mix flour and water.",
};

const has =
  (file: string, text: string, agent = "main") =>
  ({ folder }: Town): boolean => {
    const path = join(folder, agent, file);
    return existsSync(path) && readFileSync(path, "utf8").includes(text);
  };
const visited =
  (...paths: string[]) =>
  ({ visits }: Town): boolean =>
    paths.every((path) => visits.includes(path));
const posted =
  (to: string, text: string) =>
  ({ telegram }: Town): boolean =>
    telegram.sent.some((sent) => sent.route.to === to && sent.text.includes(text));
const called =
  (tool: string, part = "") =>
  ({ calls }: Town): boolean =>
    calls.some((call) => call.tool === tool && call.args.includes(part));

/** Returns whether a message of a session contains the text. */
const stands =
  (text: string, sessionKey: string) =>
  async ({ client }: Town): Promise<boolean> =>
    JSON.stringify(await client.request("chat.history", { sessionKey })).includes(text);

const fetchOf = (url: string): Step => ["fetch", { url }];

export const TASKS: readonly Task[] = [
  {
    task: "the owner sets a reminder in a new conversation",
    plans: () => ({
      "remind-1": [["cron", { action: "add", message: "Call the dentist", at: "in 2 hours" }]],
    }),
    begin: (town) => town.phone("Remind me to call the dentist. #remind-1"),
    did: async ({ client }) =>
      (await client.request("cron.list", {})).jobs.some(({ message }) => message === "Call the dentist"),
  },
  {
    task: "the owner has a preference remembered",
    plans: () => ({ remember: [["memory", { action: "add", text: "Answers are short." }]] }),
    begin: (town) => town.phone("Remember that I like short answers. #remember"),
    did: async ({ house }) =>
      JSON.stringify(await house.store.db.selectFrom("agent_memory").selectAll().execute()).includes("short"),
  },
  {
    task: "the owner has a list written",
    plans: () => ({ list: [["write", { path: "shopping.md", content: "milk\nbread\n" }]] }),
    begin: (town) => town.phone("Write milk and bread on the shopping list. #list"),
    did: has("shopping.md", "milk"),
  },
  {
    task: "the owner has the list changed",
    plans: () => ({
      tick: [["edit", { path: "shopping.md", edits: [{ oldText: "bread", newText: "rolls" }] }]],
    }),
    begin: (town) => town.phone("Rolls instead of bread. #tick"),
    did: has("shopping.md", "rolls"),
  },
  {
    task: "the owner gets the list as a file on the phone",
    plans: () => ({ "get-list": [["send_file", { path: "shopping.md" }]] }),
    begin: (town) => town.phone("Send me the list. #get-list"),
    did: async ({ house }) =>
      JSON.stringify(await house.store.db.selectFrom("sent_files").selectAll().execute()).includes(
        "shopping",
      ),
  },
  {
    task: "the owner has a page summed up, whose address is in the message",
    begin: (town) => {
      town.plan("rail", [fetchOf(town.web("/rail"))]);
      return town.phone(`When do trains leave? ${town.web("/rail")} #rail`);
    },
    did: posted("1", "8:02"),
  },
  {
    task: "the owner asks to follow a link of that page",
    begin: (town) => {
      town.plan("fares", [fetchOf(town.web("/rail/fares"))]);
      return town.phone("And the price? #fares");
    },
    did: posted("1", "50 francs"),
  },
  {
    task: "the owner has three pages compared",
    begin: (town) => {
      const urls = ["a", "b", "c"].map((one) => town.web(`/prices/${one}`));
      town.plan("compare", urls.map(fetchOf));
      return town.phone(`Where is paper cheapest? ${urls.join(" ")} #compare`);
    },
    did: visited("/prices/a", "/prices/b", "/prices/c"),
  },
  {
    task: "the owner has a note made of a page",
    begin: (town) => {
      town.plan("recipe", [
        fetchOf(town.web("/recipe")),
        ["write", { path: "recipe.md", content: "Mix flour and water." }],
      ]);
      return town.phone(`Keep this recipe: ${town.web("/recipe")} #recipe`);
    },
    did: has("recipe.md", "flour"),
  },
  {
    task: "the owner asks for a note of another day",
    plans: () => ({ "read-note": [["read", { path: "recipe.md" }]] }),
    begin: (town) => town.phone("What was the recipe? #read-note"),
    did: posted("1", "flour"),
  },
  {
    task: "the owner gets a note as a file after a page",
    plans: () => ({ "get-note": [["send_file", { path: "recipe.md" }]] }),
    begin: (town) => town.phone("Send me the recipe. #get-note"),
    did: async ({ house }) =>
      JSON.stringify(await house.store.db.selectFrom("sent_files").selectAll().execute()).includes("recipe"),
  },
  {
    task: "the owner searches all notes",
    plans: () => ({ search: [["grep", { pattern: "flour" }]] }),
    begin: (town) => town.phone("Where did I write about flour? #search"),
    did: posted("1", "recipe.md"),
  },
  {
    task: "the owner sets a reminder after a page",
    plans: () => ({ "remind-2": [["cron", { action: "add", message: "Buy a ticket", at: "in 3 hours" }]] }),
    begin: (town) => town.phone("Remind me to buy the ticket. #remind-2"),
    did: async ({ client }) =>
      (await client.request("cron.list", {})).jobs.some(({ message }) => message === "Buy a ticket"),
    questions: 1,
  },
  {
    task: "the owner gets another message on the phone while the agent works",
    plans: () => ({ notice: [["message", { channel: "telegram", to: "1", message: "I began." }]] }),
    begin: (town) => town.phone("Tell me when you begin. #notice"),
    did: posted("1", "I began."),
  },
  {
    task: "a job sends the owner the weather every morning",
    begin: (town) => {
      town.plan("weather", [fetchOf(town.web("/weather"))]);
      return town.cron(`Tell the weather of ${town.web("/weather")} #weather`, "1");
    },
    did: posted("1", "sunny"),
  },
  {
    task: "a job sends the owner a digest of two pages",
    begin: (town) => {
      town.plan("digest", [fetchOf(town.web("/weather")), fetchOf(town.web("/news"))]);
      return town.cron(`Sum up ${town.web("/weather")} and ${town.web("/news")} #digest`, "1");
    },
    did: posted("1", "bridge"),
  },
  {
    task: "a job sends the team a page",
    begin: (town) => {
      town.plan("team", [fetchOf(town.web("/news"))]);
      return town.cron(`Sum up ${town.web("/news")} #team`, "-200");
    },
    did: posted("-200", "bridge"),
  },
  {
    task: "a job keeps a page in the workspace and reports",
    begin: (town) => {
      town.plan("archive", [
        fetchOf(town.web("/news")),
        ["write", { path: "archive.md", content: "A bridge was opened." }],
      ]);
      return town.cron(`Archive ${town.web("/news")} #archive`, "1");
    },
    did: has("archive.md", "bridge"),
  },
  {
    task: "a job sends the owner the subjects of new mails",
    plans: () => ({ mails: [["mcp__mail__list", {}]] }),
    begin: (town) => town.cron("Which mails came? #mails", "1"),
    did: posted("1", "Invoice"),
  },
  {
    task: "a coding agent writes a file and runs it",
    plans: () => ({
      "code-1": [
        ["write", { path: "app.sh", content: "echo hello > built.txt\n" }],
        ["exec", { command: "sh app.sh" }],
      ],
    }),
    begin: (town) => town.tell("Write the program. #code-1", CODER),
    did: has("built.txt", "hello", "coder"),
  },
  {
    task: "a coding agent looks around",
    plans: () => ({ "code-2": [["exec", { command: "ls" }]] }),
    begin: (town) => town.tell("Which files are there? #code-2", CODER),
    did: stands("Here it is: ok · app.sh", CODER),
  },
  {
    task: "a coding agent searches and changes a file",
    plans: () => ({
      "code-3": [
        ["grep", { pattern: "hello" }],
        ["read", { path: "app.sh" }],
        ["edit", { path: "app.sh", edits: [{ oldText: "hello", newText: "welcome" }] }],
        ["exec", { command: "sh app.sh" }],
      ],
    }),
    begin: (town) => town.tell("Say welcome. #code-3", CODER),
    did: has("built.txt", "welcome", "coder"),
  },
  {
    task: "a coding agent opens an address that it knows by heart",
    begin: (town) => {
      town.plan("code-4", [fetchOf(town.web("/docs/api"))]);
      return town.tell("Look up how to open. #code-4", CODER);
    },
    did: visited("/docs/api"),
  },
  {
    task: "a coding agent follows a link of the manual",
    begin: (town) => {
      town.plan("code-5", [fetchOf(town.web("/docs/api/close"))]);
      return town.tell("And how to close? #code-5", CODER);
    },
    did: visited("/docs/api/close"),
  },
  {
    task: "a coding agent changes the program after the manual, and tests it",
    plans: () => ({
      "code-6": [
        ["edit", { path: "app.sh", edits: [{ oldText: "welcome", newText: "opened" }] }],
        ["exec", { command: "sh app.sh" }],
        ["exec", { command: "cat built.txt" }],
      ],
    }),
    begin: (town) => town.tell("Use it. #code-6", CODER),
    did: stands("Here it is: ok · opened", CODER),
  },
  {
    task: "a coding agent has a sub-agent search the code",
    plans: () => ({
      "code-7": [["sessions_spawn", { task: "Where is opened? #code-7b" }]],
      "code-7b": [["grep", { pattern: "opened", path: "app.sh" }]],
    }),
    begin: (town) => town.tell("Have somebody search. #code-7", CODER),
    did: stands("Result: Here it is: ok · app.sh", CODER),
  },
  {
    task: "a sub-agent reads a page and reports",
    begin: (town) => {
      town.plan("research", [["sessions_spawn", { task: `Read ${town.web("/news")} #research-b` }]]);
      town.plan("research-b", [fetchOf(town.web("/news"))]);
      return town.tell(`Have somebody read ${town.web("/news")} #research`, "agent:main:research");
    },
    did: stands("bridge", "agent:main:research"),
  },
  {
    task: "a guest asks and the agent answers in the group",
    begin: (town) => town.guest("Are you there?"),
    did: posted("-100", "Done."),
  },
  {
    task: "a guest asks about a page",
    begin: (town) => {
      town.plan("guest-1", [fetchOf(town.web("/weather"))]);
      return town.guest(`Will it rain? ${town.web("/weather")} #guest-1`);
    },
    did: posted("-100", "sunny"),
  },
  {
    task: "a guest asks what the wiki says",
    plans: () => ({ "guest-2": [["mcp__wiki__search", { query: "opens" }]] }),
    begin: (town) => town.guest("When do you open? #guest-2"),
    did: posted("-100", "eight"),
  },
  {
    task: "a guest gets an answer out of a file of the workspace",
    plans: () => ({ "guest-3": [["read", { path: "shopping.md" }]] }),
    begin: (town) => town.guest("What do we still need? #guest-3"),
    did: posted("-100", "rolls"),
  },
  {
    task: "a guest gives an address after an answer out of a file",
    begin: (town) => {
      town.plan("guest-4", [fetchOf(town.web("/rail/fares"))]);
      return town.guest(`What does this cost? ${town.web("/rail/fares")} #guest-4`);
    },
    did: posted("-100", "francs"),
  },
  {
    task: "an agent asks another for a draft",
    plans: () => ({
      draft: [["sessions_send", { sessionKey: WRITER, message: "Draft the offer. #draft-b" }]],
      "draft-b": [["write", { path: "offer.md", content: "We offer paper." }]],
    }),
    begin: (town) => town.phone("Have the offer drafted. #draft"),
    did: has("offer.md", "paper", "writer"),
  },
  {
    task: "the coding agent reports to the main agent",
    plans: () => ({
      report: [["sessions_send", { sessionKey: MAIN, message: "The build is green.", timeoutSeconds: 0 }]],
    }),
    begin: (town) => town.tell("Report. #report", CODER),
    did: stands("build is green", MAIN),
  },
  {
    task: "the writer asks the coding agent and writes down the answer",
    plans: () => ({
      ask: [
        ["sessions_send", { sessionKey: CODER, message: "Which program? #ask-b" }],
        ["write", { path: "manual.md", content: "The program is app.sh." }],
      ],
      "ask-b": [["exec", { command: "ls" }]],
    }),
    begin: (town) => town.tell("Write the manual. #ask", WRITER),
    did: has("manual.md", "app.sh", "writer"),
  },
  {
    task: "the main agent collects the reports of both others for the owner",
    plans: () => ({
      collect: [
        ["sessions_send", { sessionKey: CODER, message: "Your report? #status" }],
        ["sessions_send", { sessionKey: WRITER, message: "Your report? #status-b" }],
      ],
      status: [["read", { path: "built.txt" }]],
      "status-b": [["read", { path: "manual.md" }]],
    }),
    begin: (town) => town.phone("What have all done? #collect"),
    did: posted("1", "The program is app.sh."),
  },
  {
    task: "the main agent has the writer work in a sub-agent",
    plans: () => ({
      delegate: [["sessions_spawn", { task: "Write the agenda. #delegate-b", agentId: "writer" }]],
      "delegate-b": [["write", { path: "agenda.md", content: "1. Offer" }]],
    }),
    begin: (town) => town.phone("Have the agenda written. #delegate"),
    did: has("agenda.md", "Offer", "writer"),
  },
  {
    task: "the owner asks what the coding agent did",
    plans: () => ({ history: [["sessions_history", { sessionKey: CODER }]] }),
    begin: (town) => town.phone("What did the coder do? #history"),
    did: posted("1", "Write the program."),
  },
  {
    task: "the owner asks for new mails",
    plans: () => ({ inbox: [["mcp__mail__list", {}]] }),
    begin: (town) => town.phone("Anything new? #inbox"),
    did: posted("1", "Ann asks"),
  },
  {
    task: "the owner asks for a mail and the dates of the week",
    plans: () => ({
      week: [
        ["mcp__mail__read", { id: 1 }],
        ["mcp__calendar__list", {}],
      ],
    }),
    begin: (town) => town.phone("Until when, and do I have time? #week"),
    did: posted("1", "review"),
  },
  {
    task: "the owner has free hours searched in the calendar",
    plans: () => ({ free: [["mcp__calendar__free", { day: "Friday" }]] }),
    begin: (town) => town.phone("When am I free on Friday? #free"),
    did: called("calendar.free", "Friday"),
  },
  {
    task: "the owner looks something up in the wiki",
    plans: () => ({ wiki: [["mcp__wiki__search", { query: "office" }]] }),
    begin: (town) => town.phone("When does the office open? #wiki"),
    did: called("wiki.search", "office"),
  },
  {
    task: "the owner has a mail written in a new conversation",
    plans: () => ({ letter: [["mcp__mail__send", { to: "bob", text: "See you on Friday." }]] }),
    begin: (town) => town.tell("Tell Bob that we meet on Friday. #letter", "agent:main:letters"),
    did: called("mail.send", "bob"),
  },
  {
    task: "the owner has a mail answered that the agent has read",
    plans: () => ({
      reply: [
        ["mcp__mail__read", { id: 1 }],
        ["read", { path: "shopping.md" }],
        ["mcp__mail__send", { to: "ann", text: "milk and rolls" }],
      ],
    }),
    begin: (town) => town.phone("Answer Ann with the list. #reply"),
    did: called("mail.send", "ann"),
    questions: 1,
  },
];
