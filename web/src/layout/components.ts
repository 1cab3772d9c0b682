/** The names of the components that contribute to a logit or to an attention score. */

import { feedforwardBlock, parseHeadSite } from "../model/attributionPath";
import { parseSite } from "../model/sites";
import type { Messages } from "../messages/en";

/** Such as “head 1.0” for block.1.head.0.output. */
export function componentName({ change, why }: Messages, name: string): string {
  const head = parseHeadSite(name);
  if (head !== null) return change.head(head.block, head.head);
  const feedforward = feedforwardBlock(name);
  if (feedforward !== null) return why.feedforward(feedforward);
  const { block, part } = parseSite(name);
  if (block !== null) return part in why.ofBlock ? `${why.ofBlock[part]} ${block}` : name;
  return why.parts[name] ?? name;
}
