/** Recomputes each site of many kinds of models from its derivation and compares it with the model's value. */

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type Area, isWeight, siteShape } from "../../src/model/sites";
import { derive } from "../../src/model/derivation";
import { evaluate } from "../../src/model/evaluation";
import type { Config } from "../../src/engine/types";

interface Recorded {
  config: Config;
  ids: number[];
  sites: string[];
  numbers: Record<string, (number | null)[][]>;
}

const path = process.env.CLEARHEAD_RECORDED;
const recorded: Record<string, Recorded> = path ? JSON.parse(readFileSync(path, "utf8")) : {};

describe.skipIf(!path)("with models recorded by the Python tests (CLEARHEAD_RECORDED)", () => {
  test.each(Object.keys(recorded))("%s", (kind) => {
    const { config, ids, sites, numbers } = recorded[kind]!;

    function take({ name, rows, columns }: Area): number[] {
      const all = numbers[name];
      if (!all) throw new Error(`${name} is neither a site nor a weight of the model`);
      const [top, bottom] = rows ?? [0, all.length];
      return all
        .slice(top, bottom)
        .flatMap((row) => row.slice(...(columns ?? [0, row.length])))
        .map((value) => value ?? -Infinity);
    }

    expect(sites.length).toBeGreaterThan(20);
    for (const name of sites) {
      const whole = numbers[name]!;
      expect([whole.length, whole[0]!.length], name).toEqual(siteShape(config, ids.length, name));
      whole.forEach((values, row) =>
        values.forEach((value, column) => {
          const derivation = derive(config, ids, { name, row, column });
          const computed = evaluate(derivation, config, derivation.inputs.map(take));
          const place = `${name}[${row}, ${column}]`;
          if (value === null) expect(computed, place).toBe(-Infinity);
          else expect(Math.abs(computed - value), place).toBeLessThan(2e-4 * (1 + Math.abs(value)));
        }),
      );
    }
    for (const name of Object.keys(numbers).filter(isWeight)) {
      expect(derive(config, ids, { name, row: 0, column: 0 }).operation, name).toBe("trained");
    }
  });
});
