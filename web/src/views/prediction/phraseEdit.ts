/** Describes an edit as a phrase. */

import type { Edit } from "../../engine/types";
import type { Messages } from "../../messages/en";
import { short, tokenLabel } from "../../messages/format.svelte";
import { describeEdit } from "../../model/edits";

const MAX_SOURCE = 60; // characters of the text that an activation was patched from

/** The text that an edit patches from, shortened. */
function sourceOf({ text }: Edit): string {
  const characters = [...(text ?? "")];
  return characters.length > MAX_SOURCE ? `${characters.slice(0, MAX_SOURCE - 1).join("")}…` : (text ?? "");
}

export function phraseEdit({ change }: Messages, edit: Edit, tokens: string[]): string {
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
  return change.done[action](what, action === "patched" ? sourceOf(edit) : short(amount));
}
