/** The areas that the views are about to read, requested together before anything is drawn. */

import type { Config } from "../engine/types";
import { columnSites, LONG_TEXT } from "../layout/columns";
import { derive, WEIGHED } from "../model/derivation";
import { type Area, isOverVocabulary, isWeight, parseSite } from "../model/sites";
import { stepsOf } from "../model/steps";
import type { PageLocation } from "./location";

type StepLocation = Pick<PageLocation, "part" | "block" | "head" | "site"> & { step: number };

/** For a long text, prefetches only the last logits; the views read the rest in slices. */
export function areasToPrefetch(
  config: Config,
  ids: readonly number[],
  { part, block, head, step, site }: StepLocation,
): Area[] {
  const last: Area = { name: "logits", rows: [ids.length - 1, ids.length] };
  if (ids.length > LONG_TEXT) return [last];
  const sites = stepsOf(part, config, block, head)[step]?.sites ?? [];
  const open = sites[Math.min(site, sites.length - 1)];
  const shown = open === undefined ? [] : [open, ...inputSites(config, ids, open)];
  const names = [...Object.values(columnSites(block, head)), ...shown].filter((name, i, all) => {
    const { part } = parseSite(name);
    return part !== WEIGHED && !isOverVocabulary(part) && !isWeight(name) && all.indexOf(name) === i;
  });
  return [last, ...names.map((name) => ({ name }))];
}

/** The sites that a site is computed from. */
function inputSites(config: Config, ids: readonly number[], site: string): string[] {
  if (parseSite(site).part === WEIGHED) return [];
  return derive(config, ids, { name: site, row: 0, column: 0 }).inputs.map(({ name }) => name);
}
