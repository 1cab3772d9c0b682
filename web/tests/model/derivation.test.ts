import { expect, test } from "vitest";
import { derive, findHighlights } from "../../src/model/derivation";
import { CONFIG } from "../config";

test("highlights the nearest inputs on screen if the direct ones are not", () => {
  const ids = [1, 2, 3];
  const name = (part: string) => `block.0.head.1.${part}`;
  const isOnScreen = (site: string) => [name("query"), name("key")].includes(site);
  const { inputs } = derive(CONFIG, ids, { name: name("weights"), row: 1, column: 0 });
  const areas = findHighlights(CONFIG, ids, inputs, isOnScreen);
  expect(areas.map((area) => `${area.name} ${area.rows}`)).toEqual([
    `${name("masked")} 1,2`,
    `${name("query")} 1,2`,
    `${name("key")} 0,1`,
    `${name("key")} 1,2`,
  ]);
  expect(findHighlights(CONFIG, ids, inputs, (site) => site === name("masked"))).toEqual(inputs);
});
