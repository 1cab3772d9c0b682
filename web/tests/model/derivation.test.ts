import { expect, test } from "vitest";
import { derive, lightUp } from "../../src/model/derivation";
import { CONFIG } from "../config";

test("where what a number was made of is not on screen, what that goes back to lights up", () => {
  const ids = [1, 2, 3];
  const name = (part: string) => `block.0.head.1.${part}`;
  const seen = (each: string) => [name("query"), name("key")].includes(each);
  const { from } = derive(CONFIG, ids, { name: name("weights"), row: 1, column: 0 });
  const lit = lightUp(CONFIG, ids, from, seen);
  expect(lit.map((area) => `${area.name} ${area.rows}`)).toEqual([
    `${name("masked")} 1,2`,
    `${name("query")} 1,2`,
    `${name("key")} 0,1`,
    `${name("key")} 1,2`,
  ]);
  expect(lightUp(CONFIG, ids, from, (each) => each === name("masked"))).toEqual(from);
});
