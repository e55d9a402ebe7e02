// Creates the recorder of the inputs of runs. Part of the composition root.

import { withoutSecrets } from "../config/recorded.ts";
import { Recorder } from "../execute/recorder.ts";
import type { World } from "../world.ts";

export function recorderOfRuns({ version, world }: { version: string; world: World }): Recorder {
  return new Recorder({ version, withoutSecrets, now: () => world.clock.now() });
}
