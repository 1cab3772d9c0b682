import { describe, expect, it } from "vitest";
import { findDirection, partDigits, roundTerms, sumDigits } from "../../src/model/update";

const term = (name: string, value: number) => ({ name, value });

describe("the sum of an update", () => {
  it("has terms that add up exactly as shown", () => {
    const [before, terms] = [0.0524122975, [-1.7654e-6, 3.1e-7, 0, 2.3456789e-3, -0.000444444, 1e-10]];
    const digits = sumDigits(
      terms.map((value, i) => term(i === 5 ? "rounding" : `${i}`, value)),
      0.0019,
    );
    expect(digits).toBe(8);
    const shown = roundTerms(before, terms, digits);
    const unit = 10 ** digits;
    const after = before + terms.reduce((sum, each) => sum + each);
    const total = shown.reduce((sum, each) => sum + Math.round(each * unit), 0);
    expect(total).toBe(Math.round(Number(after.toFixed(digits)) * unit) - Math.round(before * unit));
    terms.forEach((each, i) => expect(Math.abs(shown[i]! - each)).toBeLessThanOrEqual(1.001 / unit));
    expect(shown[2]).toBe(0);
  });

  it("has between six and ten decimals", () => {
    expect(sumDigits([term("gradient", -0.2)], -0.2)).toBe(6);
    expect(sumDigits([term("gradient", 3e-14)], 0.1)).toBe(10);
    expect(sumDigits([term("gradient", 0), term("rounding", 1e-12)], 0)).toBe(6);
  });
});

describe("the parts of a gradient", () => {
  it("add up exactly as shown", () => {
    const parts = [0.00661, -0.00604, 0.0042, 0.003249, -0.000113];
    const digits = partDigits(parts);
    expect(digits).toBe(5);
    const shown = roundTerms(0, parts, digits);
    const units = shown.map((each) => Math.round(each * 10 ** digits));
    expect(units.reduce((sum, each) => sum + each)).toBe(Math.round(0.007906 * 10 ** digits));
    expect(shown.slice(0, 2)).toEqual([0.00661, -0.00604]);
  });
  it("have a bounded number of decimals", () => {
    expect([partDigits([0, 0]), partDigits([4e-30]), partDigits([250])]).toEqual([2, 12, 2]);
  });
});

describe("the direction of a weight", () => {
  it("has signs, and the cause that was found", () => {
    const terms = [term("gradient", -0.1), term("second_moment", -0.2), term("weight_decay", 0.1)];
    const found = findDirection(2, terms, -0.2, "gradient");
    expect(found).toEqual({ change: -1, gradient: 1, decay: 1, cause: "gradient" });
  });
  it("leaves out a weight decay that makes no difference", () => {
    const terms = [term("gradient", -0.1), term("weight_decay", -0.001)];
    expect(findDirection(2, terms, -0.101, "gradient").decay).toBe(0);
    const still = { change: 0, gradient: 0, decay: 0, cause: null };
    expect(findDirection(0, [term("frozen", 0)], 0, null)).toEqual(still);
  });
});
