import { expect, test } from "vitest";
import { erf, exactErf } from "../../src/model/erf";

test("agrees with tabulated values", () => {
  expect(exactErf(0.5)).toBeCloseTo(0.5204998778130465, 14);
  expect(exactErf(-2)).toBeCloseTo(-0.9953222650189527, 14);
  expect(exactErf(4)).toBeCloseTo(0.9999999845827421, 14);
});

test("is interpolated far below the precision of float32", () => {
  for (let x = -7; x < 7; x += 0.00317) expect(Math.abs(erf(x) - exactErf(x))).toBeLessThan(1e-9);
  expect(erf(0)).toBe(0);
  expect(erf(Infinity)).toBe(1);
  expect(erf(NaN)).toBeNaN();
});
