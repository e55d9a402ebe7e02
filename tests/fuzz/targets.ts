// Lists all fuzz targets.

import type { FuzzTarget } from "./target.ts";
import { announcement } from "./targets/announcement.ts";
import { attachments } from "./targets/attachments.ts";
import { configuration } from "./targets/configuration.ts";
import { cursors, idempotencyKeys } from "./targets/cursors.ts";
import { frames } from "./targets/frames.ts";
import { hiddenText } from "./targets/hidden-text.ts";
import { histories } from "./targets/histories.ts";
import { http } from "./targets/http.ts";
import { sessionKeys } from "./targets/keys.ts";
import { labels } from "./targets/labels.ts";
import { modelStreams } from "./targets/model-streams.ts";
import { policies } from "./targets/policies.ts";
import { storeFiles } from "./targets/store-files.ts";
import { redaction, textSplit, turnSteps } from "./targets/texts.ts";
import { toolArguments } from "./targets/tools.ts";
import { transcripts } from "./targets/transcripts.ts";

export const TARGETS: readonly FuzzTarget<unknown>[] = [
  sessionKeys,
  textSplit,
  redaction,
  hiddenText,
  labels,
  turnSteps,
  announcement,
  attachments,
  policies,
  histories,
  configuration,
  frames,
  http,
  transcripts,
  storeFiles,
  toolArguments,
  cursors,
  idempotencyKeys,
  modelStreams,
];
