// Adds the routes of OpenAI's API: a chat completion or a response is one run of an agent.

import { type FeatureRoute, feature } from "../../feature.ts";
import { openAiError } from "./errors.ts";
import { OPENAI_TABLES } from "./tables.ts";

export const openai = feature({
  name: "openai",
  tables: OPENAI_TABLES,
  routes: {
    "/v1/*": {
      shown: "/v1/ (OpenAI)",
      needsToken: true,
      formatError: openAiError,
      load: (): ReturnType<FeatureRoute["load"]> => import("./door.ts"),
    },
  },
});
