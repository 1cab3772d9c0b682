import { expect, test } from "vitest";
import { embed } from "../../src/model/tinyHead";
import {
  addPositions,
  asFraction,
  attend,
  average,
  changedRows,
  linearScores,
  runAttention,
  runOrdered,
  runRnn,
  weightOnOne,
  zerosUntilBelow,
} from "../../src/model/workedNumbers";

const near = (values: number[], expected: number[], digits = 5) => {
  expect(values).toHaveLength(expected.length);
  values.forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, digits));
};

test("matches the lecture: keys and a query, with base 3 and with e", () => {
  const three = attend(embed("0010"), [0, 1], 3);
  expect(three.scores).toEqual([0, 0, 1, 0]);
  expect(three.powers).toEqual([1, 1, 3, 1]);
  near(three.weights, [1 / 6, 1 / 6, 1 / 2, 1 / 6], 12);
  near(three.result, [1 / 2, 1 / 2], 12);
  const natural = attend(embed("0010"), [0, 1]);
  near(natural.weights, [0.17488, 0.17488, 0.47537, 0.17488]);
  near(natural.result, [0.52463, 0.47537]);
  expect(average(embed("0010"))).toEqual([3 / 4, 1 / 4]);
});

test("matches the lecture: nothing to find in 0000", () => {
  const { weights, result } = attend(embed("0000"), [0, 1], 3);
  expect(weights).toEqual(Array(4).fill(1 / 4));
  expect(result).toEqual([1, 0]);
});

test("matches the lecture: boosted keys, and the fading weight on the 1", () => {
  expect(weightOnOne(3, 10)).toBeCloseTo(0.99986, 5);
  expect(weightOnOne(3, 1)).toBeCloseTo(0.47537, 5);
  expect(weightOnOne(100, 1)).toBeCloseTo(0.02646, 5);
  expect(weightOnOne(1000, 10)).toBeGreaterThan(0.95);
  expect(weightOnOne(100, Math.log(100))).toBeCloseTo(0.5, 12);
});

test("a recurrent state fades by the same share in each cell", () => {
  expect(zerosUntilBelow(0.9, 0.01)).toBe(44);
});

test("outputs depend on their own vector and those before it", () => {
  const x = [
    [1, 0],
    [0, 1],
    [1, 1],
  ];
  const changed = [x[0]!, [5, 1], x[2]!];
  for (const run of [runRnn, runAttention]) expect(changedRows(run(x), run(changed))).toEqual([1, 2]);
  near(runAttention(x)[1]!, [1 / (1 + Math.E), Math.E / (1 + Math.E)]);
  near(runRnn(x)[1]!, [Math.tanh(Math.tanh(1) / 2), Math.tanh(1)]);
});

test("the matrix of linear attention acts on the key, the query or both", () => {
  const [k, q] = [
    [2, -1],
    [0.5, 3],
  ];
  const W_K = [
    [1, 2],
    [3, 4],
  ];
  const W_Q = [
    [0, 1],
    [-1, 2],
  ];
  const { W, both, linear, onKey, onQuery } = linearScores(k, q, W_K, W_Q);
  expect(W).toEqual([
    [2, 3],
    [4, 5],
  ]);
  expect(both).toBeCloseTo(linear, 12);
  expect(onKey[0]! * q[0]! + onKey[1]! * q[1]!).toBeCloseTo(linear, 12);
  expect(onQuery[0]! * k[0]! + onQuery[1]! * k[1]!).toBeCloseTo(linear, 12);
});

test("without positions, the last token cannot tell the order of the earlier ones", () => {
  const last = (sequence: string, causal: boolean, positions: boolean) =>
    runOrdered(embed(sequence), causal, positions).output.at(-1)!;
  near(last("0110", true, false), last("1010", true, false), 12);
  expect(last("0110", true, true)[0]).not.toBeCloseTo(last("1010", true, true)[0]!, 3);
  expect(runOrdered(embed("01"), true, false).weights[0]).toEqual([1, 0]);
  expect(runOrdered(embed("01"), false, false).weights[0]![1]).toBeGreaterThan(0.1);
  near(addPositions(embed("00"))[1]!, [1 + Math.sin(1), Math.cos(1)], 12);
});

test("writes fractions with small denominators", () => {
  expect(asFraction(1 / 6)).toBe("1/6");
  expect(asFraction(3 / 8)).toBe("3/8");
  expect(asFraction(-0.5)).toBe("-1/2");
  expect(asFraction(1)).toBeNull();
  expect(asFraction(Math.E)).toBeNull();
});
