import { describe, expect, it } from "vitest";
import { findDirection, roundTerms, sumDigits } from "../../src/model/update";

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

describe("the direction of a weight", () => {
  it("is against its gradient", () => {
    const found = findDirection(2, [term("gradient", -0.1), term("second_moment", -0.2)], -0.3);
    expect(found).toEqual({ change: -1, gradient: 1, cause: null });
  });
  it("has another cause if it is along its gradient or has none", () => {
    const terms = [term("gradient", -0.1), term("newton_schulz", 0.3), term("weight_decay", 0.01)];
    expect(findDirection(2, terms, 0.21)).toEqual({ change: 1, gradient: 1, cause: "newton_schulz" });
    expect(findDirection(0, [term("gradient", 0), term("weight_decay", 0.1)], 0.1).cause).toBe(
      "weight_decay",
    );
    expect(findDirection(0, [term("frozen", 0)], 0)).toEqual({ change: 0, gradient: 0, cause: null });
  });
});
