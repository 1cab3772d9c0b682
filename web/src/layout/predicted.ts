/** What is predicted, by name: a model that sees both ways guesses the words that stand there. */
import type { Messages } from "../messages/en";
import type { Config } from "../engine/client";

export function predicted(words: Messages, config: Pick<Config, "causal"> | null): string {
  return config?.causal === false ? words.flow.lastWord : words.flow.nextWord;
}
