// Runs all checks at the end of a story.

import type { Story } from "../../story.ts";
import { readBooks } from "./books.ts";
import { checkConversations } from "./conversations.ts";
import { checkFiles } from "./files.ts";
import { checkJobs } from "./jobs.ts";
import { checkOutbox } from "./outbox.ts";
import { checkRuns } from "./runs.ts";
import { checkTranscripts } from "./transcripts.ts";

export async function checkEnd(story: Story): Promise<void> {
  const books = await readBooks(story);
  await checkRuns(story, books);
  checkConversations(story, books);
  checkJobs(story, books);
  checkOutbox(story, books);
  await checkTranscripts(story, books);
  // Ignores deadlines of messages in an inbox. They are seven days ahead, after the end of every story.
  const dates = await story.look(`select kind, key from deadlines
    where kind != 'inbox' or key not in (select run_id from inbox_marks)`);
  if (dates.length > 0) story.wrong("I2", `the date of ${String(dates[0]?.key)} never comes`);
  if (story.plan.features.files) checkFiles(story, books);
}
