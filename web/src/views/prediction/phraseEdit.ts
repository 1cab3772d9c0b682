/** Describes an edit as a phrase. */

import type { Edit } from "../../engine/types";
import type { Messages } from "../../messages/en";
import { percent, short, tokenLabel, vector } from "../../messages/format.svelte";
import { describeEdit } from "../../model/edits";

const MAX_SOURCE = 60; // characters of the text that an activation was patched from

/** The text that an edit patches from, shortened. */
function sourceOf({ text }: Edit): string {
  const characters = [...(text ?? "")];
  return characters.length > MAX_SOURCE ? `${characters.slice(0, MAX_SOURCE - 1).join("")}…` : (text ?? "");
}

const MAX_WEIGHTS = 2; // the largest attention weights that an edit set
const MAX_NUMBERS = 3; // of a vector that an edit set

/** What an edit sets numbers to: a number, the largest attention weights, or the first numbers of a vector. */
function valueOf({ change }: Messages, { value }: Edit, tokens: string[], isWeights: boolean): string {
  if (!Array.isArray(value)) return short(value ?? NaN);
  const row = (Array.isArray(value[0]) ? value[0] : value) as number[];
  if (!isWeights) return vector(row.slice(0, MAX_NUMBERS), short) + (row.length > MAX_NUMBERS ? " …" : "");
  const largest = [...row.keys()].sort((a, b) => row[b]! - row[a]!).slice(0, MAX_WEIGHTS);
  return largest
    .filter((i) => row[i]! > 0)
    .map((i) => change.share(tokenLabel(tokens[i] ?? ""), percent(row[i]!)))
    .join(", ");
}

export function phraseEdit(words: Messages, edit: Edit, tokens: string[]): string {
  const { change } = words;
  const { target, action, site, block, head, columns, at, amount } = describeEdit(edit);
  const named = at.map((row) => tokenLabel(tokens[row < 0 ? row + tokens.length : row] ?? "")).join(", ");
  const what =
    target === "head"
      ? change.head(block!, head!)
      : target === "stream" && at.length > 0
        ? change.stream(named, block!)
        : target === "neuron"
          ? change.neuron(columns[0]!, block!)
          : target === "weight"
            ? change.weights(block!, head!, named)
            : site;
  const details = {
    ablated: () => "",
    scaled: () => short(amount),
    patched: () => sourceOf(edit),
    set: () => valueOf(words, edit, tokens, target === "weight"),
  };
  return change.done[action](what, details[action]());
}
