import { expect, test } from "vitest";
import { cosine, norm } from "../../src/model/vectors";

test("measures lengths and angles", () => {
  expect(norm([3, 4])).toBe(5);
  expect(cosine([1, 0], [0, 2])).toBe(0);
  expect(cosine([1, 2], [2, 4])).toBeCloseTo(1, 12);
});
