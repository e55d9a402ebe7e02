// Adds the MCP endpoint, over which other programs use sessions, and the sign-in of its clients.

import { type FeatureRoute, feature } from "../../feature.ts";

const SIGN_IN: FeatureRoute = {
  // The clients come to get a token.
  needsToken: false,
  load: (): ReturnType<FeatureRoute["load"]> => import("./sign-in/door.ts"),
};

export const mcpServer = feature({
  name: "mcp-server",
  routes: {
    "/mcp": {
      shown: "/mcp",
      needsToken: true,
      load: (): ReturnType<FeatureRoute["load"]> => import("./door.ts"),
    },
    "/oauth/*": SIGN_IN,
    "/.well-known/*": SIGN_IN,
  },
});
