import { expect, test } from "vitest";
import { embed, EXAMPLES, makeExample, parseExample, runTinyHead, softmax } from "../../src/model/tinyHead";

const near = (rows: number[][], expected: number[][]) =>
  rows.forEach((row, i) => row.forEach((value, j) => expect(value).toBeCloseTo(expected[i]![j]!, 5)));
const steps = (name: keyof typeof EXAMPLES) =>
  runTinyHead({ ...EXAMPLES[name], x: embed(EXAMPLES[name].sequence) });

test("embeds 0 as [1, 0] and 1 as [0, 1]", () => {
  expect(embed("0 x1")).toEqual([
    [1, 0],
    [0, 1],
  ]);
});

test("matches the lectures: boosted keys select the 1", () => {
  const { query, key, scores, weights, mixed } = steps("boosted");
  expect(query).toEqual(Array(4).fill([0, 1]));
  expect(key[2]).toEqual([0, 10]);
  expect(scores).toEqual(Array(4).fill([0, 0, 10, 0]));
  expect(weights[0]![2]).toBeCloseTo(0.99986, 5);
  expect(mixed[3]![1]).toBeCloseTo(0.99986, 5);
});

test("matches the lectures: plain keys only prefer the 1", () => {
  const { scores, weights, mixed } = steps("plain");
  expect(scores[0]).toEqual([0, 0, 1, 0]);
  near(
    [weights[1]!, mixed[1]!],
    [
      [0.17488, 0.17488, 0.47537, 0.17488],
      [0.52463, 0.47537],
    ],
  );
});

test("matches the lectures: 0 and 1, each with its own query", () => {
  const { scores, weights } = steps("own");
  expect(scores).toEqual([
    [10, 0],
    [0, 10],
  ]);
  near(weights, [
    [0.99995, 0.00005],
    [0.00005, 0.99995],
  ]);
});

test("divides scores and masks them", () => {
  const { scaled, masked, weights } = runTinyHead({
    ...EXAMPLES.boosted,
    x: embed("01"),
    divided: true,
    causal: true,
  });
  expect(scaled[0]![1]).toBeCloseTo(10 / Math.SQRT2);
  expect(masked[0]).toEqual([0, -Infinity]);
  expect(weights[0]).toEqual([1, 0]);
  expect(softmax([1000, 1000])).toEqual([0.5, 0.5]);
});

test("makes matrices from the lab's settings", () => {
  expect(makeExample("0010", "1", 10)).toEqual(EXAMPLES.boosted);
  const example = makeExample("110", "0", 1);
  const { weights } = runTinyHead({ ...example, x: embed(example.sequence) });
  expect(weights[0]![2]).toBeCloseTo(Math.E / (Math.E + 2), 5);
});

test("matches the lectures: base 3, and an output matrix that swaps the dimensions", () => {
  const swap = [
    [0, 1],
    [1, 0],
  ];
  const { weights, mixed, output } = runTinyHead({
    ...EXAMPLES.plain,
    x: embed("0010"),
    base3: true,
    W_O: swap,
  });
  near(
    [weights[0]!, mixed[0]!],
    [
      [1 / 6, 1 / 6, 1 / 2, 1 / 6],
      [1 / 2, 1 / 2],
    ],
  );
  const zeros = runTinyHead({ ...EXAMPLES.plain, x: embed("0000"), base3: true, W_O: swap });
  near(
    [zeros.mixed[0]!, zeros.output[0]!, output[0]!],
    [
      [1, 0],
      [0, 1],
      [1 / 2, 1 / 2],
    ],
  );
});

test("parses an example from an address", () => {
  const full = {
    ...EXAMPLES.own,
    W_O: [
      [2, 0],
      [0, 2],
    ],
    base3: true,
  };
  expect(parseExample(JSON.parse(JSON.stringify(full)))).toEqual(full);
  expect(parseExample({ ...EXAMPLES.own, W_O: [[1]], base3: 3 })).toEqual(EXAMPLES.own);
  expect(parseExample({ ...EXAMPLES.own, W_Q: "x" })).toBeNull();
});
