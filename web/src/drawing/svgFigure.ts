/** A drawing on the page as a picture that stands alone: what the browser laid out is drawn once more. */

import { PALETTES, type Theme } from "./colors";
import type { Pen } from "./pen";
import { INK, QUIET } from "./figures";
import type { Figure } from "./export";

export interface Note {
  text: string;
  color?: string; // of what it names
}

const [EDGE, HEAD, LINE] = [12, 36, 17];
const LETTER = 6.4; // pixels of one of 12, about

/** Drawings under each other, each with the caption of its figure, and what is to be said of all of them. */
export function svgFigure(
  drawings: SVGSVGElement[],
  { title, notes = [] }: { title: string; notes?: Note[] },
  theme: Theme,
): Figure {
  const wide = Math.max(360, LETTER * title.length, ...drawings.map((svg) => svg.clientWidth));
  const fit = (text: string) => wrap(text, Math.floor(wide / LETTER) - 3);
  let height = HEAD;
  const placed = drawings.map((svg) => {
    const caption = fit(svg.closest("figure")?.querySelector("figcaption")?.textContent ?? "");
    const top = height;
    height += LINE * caption.length + svg.clientHeight + EDGE;
    return { svg, caption, top };
  });
  const lines = notes.flatMap(({ text, color }) =>
    fit(text).map((line, i) => ({ line, color: i === 0 ? color : undefined })),
  );
  const end = height;
  const quiet = { size: 12, fill: QUIET[theme] };
  return {
    width: wide + 2 * EDGE,
    height: end + LINE * lines.length + EDGE,
    paint(pen) {
      pen.rect(0, 0, this.width, this.height, PALETTES[theme].paper);
      pen.text(EDGE, 18, title, { size: 14, fill: INK[theme], weight: 650 });
      for (const { svg, caption, top } of placed) {
        caption.forEach((line, i) => pen.text(EDGE, top + LINE * (i + 0.5), line, quiet));
        retrace(pen, svg, EDGE, top + LINE * caption.length);
      }
      lines.forEach(({ line, color }, i) => {
        const y = end + LINE * (i + 0.5);
        if (color !== undefined) pen.rect(EDGE, y - 5, 10, 10, color, 3);
        pen.text(EDGE + (color === undefined ? 0 : 16), y, line, quiet);
      });
    },
  };
}

/** Words in lines of so many letters. */
function wrap(text: string, most: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/).filter((each) => each !== "")) {
    const longer = `${lines.at(-1) ?? ""} ${word}`;
    if (lines.length > 0 && longer.length <= most) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Everything in an SVG that the views draw with, as it looks on screen. */
function retrace(pen: Pen, svg: SVGSVGElement, left: number, top: number): void {
  for (const each of svg.querySelectorAll<SVGGraphicsElement>("rect, line, polyline, path, circle, text")) {
    const style = getComputedStyle(each);
    const moved = each.getCTM();
    const [x, y] = [left + (moved?.e ?? 0), top + (moved?.f ?? 0)];
    const box = each.getBBox();
    const stroke = {
      color: style.stroke,
      thick: parseFloat(style.strokeWidth),
      opacity: Number(style.opacity) * Number(style.strokeOpacity),
      dash: style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(/[ ,]+/).map(parseFloat),
    };
    if (each instanceof SVGRectElement) {
      pen.rect(x + box.x, y + box.y, box.width, box.height, style.fill, each.rx.baseVal.value);
    } else if (each instanceof SVGCircleElement) {
      const [middle, radius] = [box.x + box.width / 2, box.width / 2];
      const opacity = Number(style.opacity) * Number(style.fillOpacity);
      pen.circle(x + middle, y + box.y + radius, radius, style.stroke, style.fill, opacity);
    } else if (each instanceof SVGTextElement) {
      const anchor = style.textAnchor as "start" | "middle" | "end";
      const share = { start: 0, middle: 0.5, end: 1 }[anchor];
      const at = [x + box.x + share * box.width, y + box.y + box.height / 2] as const;
      const [size, weight] = [parseFloat(style.fontSize), Number(style.fontWeight)];
      pen.text(...at, each.textContent, { size, fill: style.fill, anchor, weight });
    } else {
      pen.path(x, y, outlineOf(each), stroke);
    }
  }
}

/** A line of any kind in the words of a path. */
function outlineOf(line: SVGGraphicsElement): string {
  if (line instanceof SVGLineElement)
    return `M${line.x1.baseVal.value} ${line.y1.baseVal.value}L${line.x2.baseVal.value} ${line.y2.baseVal.value}`;
  if (line instanceof SVGPolylineElement)
    return `M${Array.from(line.points, ({ x, y }) => `${x} ${y}`).join("L")}`;
  return line.getAttribute("d") ?? "";
}
