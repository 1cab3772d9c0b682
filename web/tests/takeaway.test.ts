import { expect, test } from "vitest";
import { Matrix } from "../src/matrix";
import { matrixPicture } from "../src/pictures";
import { toCsv, toNpy, toSvg } from "../src/takeaway";

const MATRIX = new Matrix(Float32Array.of(0.1, -2, -Infinity, 3), 2, 2);
const names = { row: (i: number) => ["a", 'b "&"'][i]!, column: (j: number) => `c,${j}`, title: "<weights>" };

test("CSV has names, quoted where they must be, and numbers that float32 reads back", () => {
  const csv = toCsv(MATRIX, names.row, names.column);
  expect(csv).toBe(',"c,0","c,1"\r\na,0.100000001,-2\r\n"b ""&""",-inf,3\r\n');
});

test("npy begins as NumPy's format does, its numbers on a round place", () => {
  const bytes = toNpy(MATRIX);
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 128));
  expect(head).toContain("NUMPY");
  expect(head).toContain("'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)");
  const start = bytes.length - 16;
  expect(start % 64).toBe(0);
  expect(Array.from(new Float32Array(bytes.buffer, start))).toEqual(Array.from(MATRIX.values));
});

test("a picture as SVG is well formed, whatever the names", () => {
  const svg = toSvg(matrixPicture(MATRIX, names, "attention", "light"));
  expect(svg).toContain("&lt;weights&gt;");
  expect(svg).toContain("b &quot;&amp;&quot;");
  expect(svg).toContain("−∞");
  expect(svg.match(/<rect/g)!.length).toBe(5 + 9); // the legend has nine
});
