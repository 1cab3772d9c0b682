/** Makes figures for export from SVG elements on the page. */

import { PALETTES, type Theme } from "./colors";
import type { Pen } from "./pen";
import { INK, MUTED } from "./figures";
import type { Figure } from "./export";

export interface Note {
  text: string;
  color?: string; // of the swatch beside it
}

const [MARGIN, TITLE_HEIGHT, LINE_HEIGHT] = [12, 36, 17];
const CHARACTER_WIDTH = 6.4; // approximate width of a character, in pixels

/** The drawings, one below another, each with the caption of its figure, and notes for all of them. */
export function svgFigure(
  drawings: SVGSVGElement[],
  { title, notes = [] }: { title: string; notes?: Note[] },
  theme: Theme,
): Figure {
  const width = Math.max(360, CHARACTER_WIDTH * title.length, ...drawings.map((svg) => svg.clientWidth));
  const fit = (text: string) => wrap(text, Math.floor(width / CHARACTER_WIDTH) - 3);
  let height = TITLE_HEIGHT;
  const positioned = drawings.map((svg) => {
    const caption = fit(svg.closest("figure")?.querySelector("figcaption")?.textContent ?? "");
    const top = height;
    height += LINE_HEIGHT * caption.length + svg.clientHeight + MARGIN;
    return { svg, caption, top };
  });
  const lines = notes.flatMap(({ text, color }) =>
    fit(text).map((line, i) => ({ line, color: i === 0 ? color : undefined })),
  );
  const bodyEnd = height;
  const muted = { size: 12, fill: MUTED[theme] };
  return {
    width: width + 2 * MARGIN,
    height: bodyEnd + LINE_HEIGHT * lines.length + MARGIN,
    paint(pen) {
      pen.rect(0, 0, this.width, this.height, PALETTES[theme].paper);
      pen.text(MARGIN, 18, title, { size: 14, fill: INK[theme], weight: 650 });
      for (const { svg, caption, top } of positioned) {
        caption.forEach((line, i) => pen.text(MARGIN, top + LINE_HEIGHT * (i + 0.5), line, muted));
        inTheme(theme, svg, () => paintSvg(pen, svg, MARGIN, top + LINE_HEIGHT * caption.length));
      }
      lines.forEach(({ line, color }, i) => {
        const y = bodyEnd + LINE_HEIGHT * (i + 0.5);
        if (color !== undefined) pen.rect(MARGIN, y - 5, 10, 10, color, 3);
        pen.text(MARGIN + (color === undefined ? 0 : 16), y, line, muted);
      });
    },
  };
}

/** Wraps text into lines of at most `maxLength` characters. */
function wrap(text: string, maxLength: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/).filter((word) => word !== "")) {
    const extended = `${lines.at(-1) ?? ""} ${word}`;
    if (lines.length > 0 && extended.length <= maxLength) lines[lines.length - 1] = extended;
    else lines.push(word);
  }
  return lines;
}

/** Runs `paint` with the page's styles in this theme. Nothing is drawn on screen in between. */
function inTheme(theme: Theme, element: Element, paint: () => void): void {
  const root = element.getRootNode();
  const host = root instanceof ShadowRoot ? (root.host as HTMLElement) : document.documentElement;
  const before = host.dataset.theme;
  host.dataset.theme = theme;
  paint();
  host.dataset.theme = before;
}

/** Paints the shapes of an SVG element with their computed styles. */
function paintSvg(pen: Pen, svg: SVGSVGElement, left: number, top: number): void {
  for (const element of svg.querySelectorAll<SVGGraphicsElement>(
    "rect, line, polyline, path, circle, text",
  )) {
    const style = getComputedStyle(element);
    const matrix = element.getCTM();
    const [x, y] = [left + (matrix?.e ?? 0), top + (matrix?.f ?? 0)];
    const box = element.getBBox();
    const stroke = {
      color: style.stroke,
      thickness: parseFloat(style.strokeWidth),
      opacity: Number(style.opacity) * Number(style.strokeOpacity),
      dash: style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(/[ ,]+/).map(parseFloat),
    };
    if (element instanceof SVGRectElement) {
      pen.rect(x + box.x, y + box.y, box.width, box.height, style.fill, element.rx.baseVal.value);
    } else if (element instanceof SVGCircleElement) {
      const [middle, radius] = [box.x + box.width / 2, box.width / 2];
      const opacity = Number(style.opacity) * Number(style.fillOpacity);
      pen.circle(x + middle, y + box.y + radius, radius, style.stroke, style.fill, opacity);
    } else if (element instanceof SVGTextElement) {
      const anchor = style.textAnchor as "start" | "middle" | "end";
      const offset = { start: 0, middle: 0.5, end: 1 }[anchor];
      const at = [x + box.x + offset * box.width, y + box.y + box.height / 2] as const;
      const [size, weight] = [parseFloat(style.fontSize), Number(style.fontWeight)];
      pen.text(...at, element.textContent, { size, fill: style.fill, anchor, weight });
    } else {
      pen.path(x, y, pathData(element), stroke);
    }
  }
}

/** The path data of a line, polyline or path. */
function pathData(line: SVGGraphicsElement): string {
  if (line instanceof SVGLineElement)
    return `M${line.x1.baseVal.value} ${line.y1.baseVal.value}L${line.x2.baseVal.value} ${line.y2.baseVal.value}`;
  if (line instanceof SVGPolylineElement)
    return `M${Array.from(line.points, ({ x, y }) => `${x} ${y}`).join("L")}`;
  return line.getAttribute("d") ?? "";
}
