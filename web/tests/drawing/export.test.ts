import { expect, test, vi } from "vitest";
import type { Pen } from "../../src/drawing/pen";
import { Matrix } from "../../src/model/matrix";
import { barsFigure, matrixFigure } from "../../src/drawing/figures";
import { tableToCsv, toCsv, toNpy, toSvg } from "../../src/drawing/export";

const MATRIX = new Matrix(Float32Array.of(0.1, -2, -Infinity, 3), 2, 2);
const names = { row: (i: number) => ["a", 'b "&"'][i]!, column: (j: number) => `c,${j}`, title: "<weights>" };

test("writes CSV with quoted names and numbers that round-trip as float32", () => {
  const csv = toCsv(MATRIX, names.row, names.column);
  expect(csv).toBe(',"c,0","c,1"\r\na,0.100000001,-2\r\n"b ""&""",-inf,3\r\n');
});

test("writes .npy with an aligned header", () => {
  const bytes = toNpy(MATRIX);
  const header = new TextDecoder("latin1").decode(bytes.subarray(0, 128));
  expect(header).toContain("NUMPY");
  expect(header).toContain("'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)");
  const start = bytes.length - 16;
  expect(start % 64).toBe(0);
  expect(Array.from(new Float32Array(bytes.buffer, start))).toEqual(Array.from(MATRIX.values));
});

test("escapes names in SVG", () => {
  const svg = toSvg(matrixFigure(MATRIX, names, "attention", "light"));
  expect(svg).toContain("&lt;weights&gt;");
  expect(svg).toContain("b &quot;&amp;&quot;");
  expect(svg).toContain("−∞");
  expect(svg.match(/<rect/g)!.length).toBe(5 + 9); // the legend has nine steps
});

test("hatches masked cells, and says so in the legend", () => {
  const visible = (row: number): [number, number] => [0, row + 1];
  const matrix = new Matrix(Float32Array.of(1, 0, 0.5, 0.5), 2, 2);
  const svg = toSvg(matrixFigure(matrix, { ...names, masked: "masked" }, "attention", "light", { visible }));
  expect(svg.match(/<pattern /g)!.length).toBe(1);
  const id = /<pattern id="([^"]+)"/.exec(svg)![1];
  const hatched = [...svg.matchAll(/<rect x="([\d.]+)"[^>]*fill="url\(#([^)]+)\)"/g)];
  expect(hatched.map((match) => match[2])).toEqual([id, id]); // one cell and its sample in the legend
  expect(svg).toContain(">masked<");
  expect(toSvg(matrixFigure(matrix, names, "attention", "light"))).not.toContain("<pattern");
});

test("slants the names of narrow columns and keeps them far enough apart", () => {
  const matrix = new Matrix(new Float32Array(200 * 200), 200, 200);
  const named = { ...names, row: String, column: (j: number) => `token${j}` };
  const image = { toDataURL: () => "data:," } as HTMLCanvasElement;
  const texts: { x: number; angle: number }[] = [];
  const pen = new Proxy({} as Pen, {
    get: (_, method) => (x: number, _y: number, text: string, style: { angle?: number }) => {
      if (method === "text" && /^token/.test(text)) texts.push({ x, angle: style.angle ?? 0 });
    },
  });
  vi.stubGlobal("document", { createElement: () => image });
  try {
    Object.assign(image, {
      getContext: () => ({
        createImageData: (w: number, h: number) => ({ data: new Uint8ClampedArray(4 * w * h) }),
        putImageData: () => undefined,
      }),
    });
    matrixFigure(matrix, named, "attention", "light").paint(pen);
  } finally {
    vi.unstubAllGlobals();
  }
  expect(texts.length).toBeGreaterThan(40);
  texts.slice(1).forEach(({ x, angle }, i) => {
    expect(angle).toBe(-60);
    expect(x - texts[i]!.x).toBeGreaterThanOrEqual(14 - 1e-6);
  });
});

test("writes long names in full, with room for the last one", () => {
  const matrix = new Matrix(new Float32Array(4), 2, 2);
  const long = (i: number) => `extraordinarily${i}`;
  const figure = matrixFigure(
    matrix,
    { ...names, row: long, column: long, axes: "from to" },
    "attention",
    "light",
  );
  const svg = toSvg(figure);
  expect(svg.match(/>extraordinarily1</g)!.length).toBe(2); // a row and a column
  expect(svg).toContain(">from to<");
  const wide = new Matrix(new Float32Array(20), 1, 20);
  const width = (column: (i: number) => string) =>
    matrixFigure(wide, { ...names, column }, "attention", "light").width;
  expect(width(long)).toBeGreaterThan(width(String) + 20);
});

test("embeds the font in SVG if there is one", () => {
  const figure = matrixFigure(MATRIX, names, "attention", "light");
  expect(toSvg(figure)).not.toContain("@font-face");
  expect(toSvg(figure, "data:font/woff2;base64,AA")).toContain("src:url(data:font/woff2;base64,AA)");
});

test("writes all digits of a table, and nothing for unknown values", () => {
  const rows = [
    ['say "a, b"', 0.1 + 0.2, null],
    [" it", 123456789, 1e-12],
  ];
  expect(tableToCsv({ columns: ["word", "loss", "rate"], rows })).toBe(
    'word,loss,rate\r\n"say ""a, b""",0.30000000000000004,\r\n it,123456789,1e-12\r\n',
  );
});

test("writes text in cells without changing their colors", () => {
  const cellText = (row: number, column: number) => `w${row}${column}`;
  const plain = toSvg(matrixFigure(MATRIX, names, "attention", "light"));
  const svg = toSvg(matrixFigure(MATRIX, names, "attention", "light", { cellText }));
  for (const word of ["w00", "w01", "w10", "w11"]) expect(svg).toContain(`>${word}<`);
  const fills = (text: string) =>
    [...text.matchAll(/<rect [^>]*height="22" fill="([^"]+)"/g)].map((m) => m[1]);
  expect(fills(svg)).toEqual(fills(plain));
  expect(fills(svg).length).toBe(4);
});

test("draws bars by size and colors them by sign", () => {
  const bars = [
    { name: "a", size: 2, labels: ["2.00"] },
    { name: "b", size: -1, labels: ["−1.00"] },
  ];
  const svg = toSvg(barsFigure(bars, "both", "light"));
  const drawn = (svg: string) =>
    [...svg.matchAll(/x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="16" fill="([^"]+)"/g)].map(
      ([, x, width, fill]) => [Number(x), Number(width), fill],
    );
  expect(drawn(svg)).toEqual([
    [210, 160, "#7a49d0"], // zero is a third of the way from the left
    [130, 80, "#b7791f"],
  ]);
  const shares = [{ name: "a", size: 0.25, labels: ["25%"] }];
  expect(drawn(toSvg(barsFigure(shares, "shares", "light", 1)))).toEqual([[130, 60, "#7a49d0"]]);
});
