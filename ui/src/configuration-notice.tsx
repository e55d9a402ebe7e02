// Shows a notice in every view if the gateway does not use all settings of the configuration file.

import { ask, coversAll, may } from "./gateway.ts";
import { useNews, useReading } from "./parts/reading.ts";
import { hrefOf } from "./route.ts";

export function ConfigurationNotice() {
  const { value, again } = useReading("configuration", async () =>
    coversAll() ? (await ask("status")).config : undefined,
  );
  // Asks again at each `health` event, which comes about once a minute.
  useNews("health", again);
  useNews("config", again);
  if (value === undefined || (value.ok && !value.differs)) return null;
  return (
    <p class="banner" role="status">
      {value.ok
        ? `Some settings of the file apply only after a restart: ${value.restart.join(", ")}.`
        : "The gateway runs on an older configuration, because the file is now invalid."}{" "}
      {may("operator.admin") && (
        <a href={hrefOf({ view: "operations", tab: "configuration" })}>Show differences</a>
      )}
    </p>
  );
}
