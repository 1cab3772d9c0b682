import { expect, test } from "vitest";
import { derive, findHighlights, orderTerms } from "../../src/model/derivation";
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

test("does not blame one head for a number that all heads contribute to", () => {
  const onScreen = ["weights", "value", "mixed"].map((part) => `block.1.head.1.${part}`);
  for (const name of ["block.1.normed2", "block.1.middle", "block.1.attention", "block.2.normed"]) {
    const { inputs } = derive(CONFIG, [1, 2, 3], { name, row: 1, column: 0 });
    expect(findHighlights(CONFIG, [1, 2, 3], inputs, (site) => onScreen.includes(site))).toEqual(inputs);
  }
});

test("a weighted sum of values has no terms for masked tokens", () => {
  const weights = [0.5, 0, 0.25, 0, 0, 0];
  const values = [1, 1, 4, 9, 9, 9];
  const mixed = (row: number) =>
    derive(CONFIG, [1, 2, 3, 4, 5, 6], { name: "block.0.head.1.mixed", row, column: 0 });
  expect(orderTerms(mixed(2), [weights, values])).toEqual([2, 0, 1]);
  expect(orderTerms(mixed(1), [weights, values])).toEqual([2, 0, 1]); // an edit gave weight to a masked token
  expect(
    orderTerms(
      derive({ ...CONFIG, causal: false }, [], { name: "block.0.head.1.mixed", row: 2, column: 0 }),
      [weights, values],
    ),
  ).toHaveLength(6);
});

test("orders the terms of a sum by their size", () => {
  const softmax = derive(CONFIG, [1, 2, 3], { name: "block.0.head.1.weights", row: 2, column: 1 });
  expect(orderTerms(softmax, [[3, 1, 2]])).toEqual([1, 0, 2]); // this, then the largest
  const scores = derive(CONFIG, [1, 2, 3], { name: "block.0.head.1.scores", row: 2, column: 1 });
  expect(
    orderTerms(scores, [
      [1, -3, 2],
      [1, 1, 1],
    ]),
  ).toEqual([1, 2, 0]);
});
