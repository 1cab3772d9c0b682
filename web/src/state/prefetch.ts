/** What the views are about to show of a text: asked for at once, before any of them is drawn. */

import type { Place } from "./location";
import { type Area, isOfWords, isWeight, parse } from "../model/sites";
import { derive, WEIGHED } from "../model/derivation";
import { sitesOf, WHOLE } from "../drawing/flow";
import type { Config } from "../engine/client";
import { stepsOf } from "../model/steps";

/** Of a long text only its end: of the rest the views ask for parts, once they know which. */
export function needsOf(
  config: Config,
  ids: readonly number[],
  { part, block, head, step, site }: Pick<Place, "part" | "block" | "head" | "site"> & { step: number },
): Area[] {
  const last: Area = { name: "logits", rows: [ids.length - 1, ids.length] };
  if (ids.length > WHOLE) return [last];
  const sites = stepsOf(part, config, block, head)[step]?.sites ?? [];
  const open = sites[Math.min(site, sites.length - 1)];
  const shown = open === undefined ? [] : [open, ...sourcesOf(config, ids, open)];
  const names = [...Object.values(sitesOf(block, head)), ...shown].filter((name, i, all) => {
    const { part } = parse(name);
    return part !== WEIGHED && !isOfWords(part) && !isWeight(name) && all.indexOf(name) === i;
  });
  return [last, ...names.map((name) => ({ name }))];
}

/** The sites that a number of this one is computed from. */
function sourcesOf(config: Config, ids: readonly number[], site: string): string[] {
  if (parse(site).part === WEIGHED) return [];
  return derive(config, ids, { name: site, row: 0, column: 0 }).from.map(({ name }) => name);
}
