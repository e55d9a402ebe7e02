// Reads the models between which a reader can choose.

import { ask } from "../gateway.ts";
import { useReading } from "../parts/reading.ts";

/** Returns the models that the gateway knows, like `openai/gpt-5`. Empty until they were read. */
export function useModelRefs(): readonly string[] {
  const { value } = useReading("models", () => ask("models.list"));
  return (value?.models ?? []).map(({ provider, id }) => `${provider}/${id}`);
}
