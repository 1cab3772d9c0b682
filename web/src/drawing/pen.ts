/** One drawing interface for canvas and SVG. */

import { HATCH_SPACING, type Hatch } from "./colors";

export interface TextStyle {
  size?: number;
  fill: string;
  anchor?: "start" | "middle" | "end";
  weight?: number;
  angle?: number; // in degrees, clockwise around the given point
}

export interface Stroke {
  color: string;
  thickness: number;
  opacity: number;
  dash: number[]; // empty for a solid line
}

export interface Pen {
  rect(x: number, y: number, width: number, height: number, fill: string, radius?: number): void;
  /** Diagonal lines, continuous from one rectangle to the next. */
  hatch(x: number, y: number, width: number, height: number, hatch: Hatch, radius?: number): void;
  frame(
    x: number,
    y: number,
    width: number,
    height: number,
    stroke: string,
    radius?: number,
    thickness?: number,
  ): void;
  line(x1: number, y1: number, x2: number, y2: number, stroke: string, thickness: number): void;
  /** A curve that is horizontal at both ends. */
  curve(
    x1: number,
    y1: number,
    x2: number,
    y2: number,
    stroke: string,
    thickness: number,
    opacity: number,
  ): void;
  circle(x: number, y: number, radius: number, stroke: string, fill: string, opacity?: number): void;
  /** An SVG path, translated by x and y. */
  path(x: number, y: number, d: string, stroke: Stroke): void;
  text(x: number, y: number, text: string, style: TextStyle): void;
  /** Without smoothing. */
  image(x: number, y: number, width: number, height: number, image: HTMLCanvasElement): void;
}

// Inter Variable is the page's font. Where it is missing, an installed Inter or a similar font replaces it.
const FONT_FAMILY = "'Inter Variable', Inter, 'Helvetica Neue', Helvetica, Arial, sans-serif";

export class CanvasPen implements Pen {
  #fill = ""; // the last values set: assigning them is slow, because the browser parses them
  #font = "";

  constructor(readonly context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D) {}

  #patterns = new Map<string, CanvasPattern>(); // by color

  #setFill(fill: string): void {
    if (fill !== this.#fill) this.context.fillStyle = this.#fill = fill;
  }

  rect(x: number, y: number, width: number, height: number, fill: string, radius = 0): void {
    this.#setFill(fill);
    this.#fillRect(x, y, width, height, radius);
  }

  #fillRect(x: number, y: number, width: number, height: number, radius: number): void {
    if (radius === 0) this.context.fillRect(x, y, width, height);
    else {
      this.context.beginPath();
      this.context.roundRect(x, y, width, height, radius);
      this.context.fill();
    }
  }

  hatch(x: number, y: number, width: number, height: number, hatch: Hatch, radius = 0): void {
    const key = `${hatch.background} ${hatch.line}`;
    const pattern = this.#patterns.get(key) ?? this.#makePattern(hatch);
    this.#patterns.set(key, pattern);
    this.context.fillStyle = pattern;
    this.#fill = key;
    this.#fillRect(x, y, width, height, radius);
  }

  /** A tile at the screen's resolution, so that its lines are sharp. */
  #makePattern({ background, line }: Hatch): CanvasPattern {
    const scale = this.context.getTransform().a;
    const side = Math.max(4, Math.round(HATCH_SPACING * scale));
    const tile = document.createElement("canvas");
    [tile.width, tile.height] = [side, side];
    const context = tile.getContext("2d")!;
    context.fillStyle = background;
    context.fillRect(0, 0, side, side);
    context.strokeStyle = line;
    context.lineWidth = Math.max(1, scale);
    context.beginPath();
    for (const start of [-side, 0, side]) {
      context.moveTo(start - 1, side + 1);
      context.lineTo(start + side + 1, -1);
    }
    context.stroke();
    const pattern = this.context.createPattern(tile, "repeat")!;
    pattern.setTransform(new DOMMatrix().scale(1 / scale));
    return pattern;
  }

  frame(
    x: number,
    y: number,
    width: number,
    height: number,
    stroke: string,
    radius = 0,
    thickness = 1,
  ): void {
    this.context.strokeStyle = stroke;
    this.context.lineWidth = thickness;
    this.context.beginPath();
    this.context.roundRect(x, y, width, height, radius);
    this.context.stroke();
  }

  line(x1: number, y1: number, x2: number, y2: number, stroke: string, thickness: number): void {
    this.context.strokeStyle = stroke;
    this.context.lineWidth = thickness;
    this.context.beginPath();
    this.context.moveTo(x1, y1);
    this.context.lineTo(x2, y2);
    this.context.stroke();
  }

  curve(
    x1: number,
    y1: number,
    x2: number,
    y2: number,
    stroke: string,
    thickness: number,
    opacity: number,
  ): void {
    this.context.globalAlpha = opacity;
    this.context.strokeStyle = stroke;
    this.context.lineWidth = thickness;
    const middle = (x1 + x2) / 2;
    this.context.beginPath();
    this.context.moveTo(x1, y1);
    this.context.bezierCurveTo(middle, y1, middle, y2, x2, y2);
    this.context.stroke();
    this.context.globalAlpha = 1;
  }

  circle(x: number, y: number, radius: number, stroke: string, fill: string, opacity = 1): void {
    this.context.globalAlpha = opacity;
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.#setFill(fill);
    this.context.fill();
    if (stroke !== "none") {
      this.context.strokeStyle = stroke;
      this.context.lineWidth = 1.25;
      this.context.stroke();
    }
    this.context.globalAlpha = 1;
  }

  path(x: number, y: number, d: string, { color, thickness, opacity, dash }: Stroke): void {
    this.context.save();
    this.context.translate(x, y);
    this.context.globalAlpha = opacity;
    this.context.strokeStyle = color;
    this.context.lineWidth = thickness;
    this.context.setLineDash(dash);
    this.context.stroke(new Path2D(d));
    this.context.restore();
  }

  text(
    x: number,
    y: number,
    text: string,
    { size = 13, fill, anchor = "start", weight = 400, angle = 0 }: TextStyle,
  ): void {
    const font = `${weight} ${size}px ${FONT_FAMILY}`;
    if (font !== this.#font) this.context.font = this.#font = font;
    this.#setFill(fill);
    this.context.textAlign = anchor === "middle" ? "center" : anchor;
    this.context.textBaseline = "middle";
    if (angle === 0) return this.context.fillText(text, x, y);
    this.context.translate(x, y);
    this.context.rotate((angle * Math.PI) / 180);
    this.context.fillText(text, 0, 0);
    this.context.rotate((-angle * Math.PI) / 180);
    this.context.translate(-x, -y);
  }

  image(x: number, y: number, width: number, height: number, image: HTMLCanvasElement): void {
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(image, x, y, width, height);
  }
}

export class SvgPen implements Pen {
  #parts: string[] = [];
  #patterns = new Map<string, string>(); // by id

  rect(x: number, y: number, width: number, height: number, fill: string, radius = 0): void {
    this.#add("rect", { x, y, width, height, fill, ...(radius && { rx: radius }) });
  }

  hatch(x: number, y: number, width: number, height: number, hatch: Hatch, radius = 0): void {
    const id = `hatch-${hatch.background}-${hatch.line}`.replaceAll("#", "");
    this.#patterns.set(id, svgPattern(id, hatch));
    this.rect(x, y, width, height, `url(#${id})`, radius);
  }

  frame(
    x: number,
    y: number,
    width: number,
    height: number,
    stroke: string,
    radius = 0,
    thickness = 1,
  ): void {
    this.#add("rect", { x, y, width, height, rx: radius, fill: "none", stroke, "stroke-width": thickness });
  }

  line(x1: number, y1: number, x2: number, y2: number, stroke: string, thickness: number): void {
    this.#add("line", { x1, y1, x2, y2, stroke, "stroke-width": thickness });
  }

  curve(
    x1: number,
    y1: number,
    x2: number,
    y2: number,
    stroke: string,
    thickness: number,
    opacity: number,
  ): void {
    const middle = (x1 + x2) / 2;
    const d = `M${r(x1)} ${r(y1)}C${r(middle)} ${r(y1)} ${r(middle)} ${r(y2)} ${r(x2)} ${r(y2)}`;
    this.#add("path", { d, fill: "none", stroke, "stroke-width": thickness, opacity });
  }

  circle(x: number, y: number, radius: number, stroke: string, fill: string, opacity = 1): void {
    this.#add("circle", { cx: x, cy: y, r: radius, stroke, fill, ...(opacity < 1 && { opacity }) });
  }

  path(x: number, y: number, d: string, { color, thickness, opacity, dash }: Stroke): void {
    const style = { fill: "none", stroke: color, "stroke-width": thickness, opacity };
    const dashed = dash.length > 0 && { "stroke-dasharray": dash.join(" ") };
    this.#add("path", { d, transform: `translate(${r(x)} ${r(y)})`, ...style, ...dashed });
  }

  text(
    x: number,
    y: number,
    text: string,
    { size = 13, fill, anchor = "start", weight = 400, angle = 0 }: TextStyle,
  ): void {
    const position = { x, y, fill, "font-size": size, "font-weight": weight, "text-anchor": anchor };
    const turned = angle !== 0 && { transform: `rotate(${angle} ${r(x)} ${r(y)})` };
    this.#add("text", { ...position, "dominant-baseline": "central", ...turned }, escape(text));
  }

  image(x: number, y: number, width: number, height: number, image: HTMLCanvasElement): void {
    const href = image.toDataURL("image/png");
    const position = { x, y, width, height, preserveAspectRatio: "none" };
    this.#add("image", { ...position, "image-rendering": "pixelated", href });
  }

  /** `font` is a data URL of the page's font, if it is to be embedded. */
  finish(width: number, height: number, font?: string): string {
    const viewBox = `0 0 ${r(width)} ${r(height)}`;
    const start = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${viewBox}" font-family="${FONT_FAMILY}">`;
    const patterns = [...this.#patterns.values()].join("");
    const parts = patterns === "" ? this.#parts : [`<defs>${patterns}</defs>`, ...this.#parts];
    const face = `@font-face{font-family:'Inter Variable';font-weight:100 900;src:url(${font})}`;
    if (font !== undefined) parts.unshift(`<style>${face}</style>`);
    return `${start}\n${parts.join("\n")}\n</svg>\n`;
  }

  #add(tag: string, attributes: Record<string, string | number>, content = ""): void {
    const list = Object.entries(attributes).map(
      ([name, value]) => ` ${name}="${typeof value === "number" ? r(value) : escape(value)}"`,
    );
    this.#parts.push(`<${tag}${list.join("")}${content === "" ? "/>" : `>${content}</${tag}>`}`);
  }
}

function svgPattern(id: string, { background, line }: Hatch): string {
  const s = HATCH_SPACING;
  const whole = `<path d="M0 0H${s}V${s}H0Z" fill="${background}"/>`;
  const lines = `<path d="M-1 1L1 -1M0 ${s}L${s} 0M${s - 1} ${s + 1}L${s + 1} ${s - 1}" stroke="${line}"/>`;
  return `<pattern id="${id}" width="${s}" height="${s}" patternUnits="userSpaceOnUse">${whole}${lines}</pattern>`;
}

function r(number: number): string {
  return String(Math.round(100 * number) / 100);
}

/** Escapes text for XML, and replaces characters that XML does not allow. */
function escape(text: string): string {
  return (
    text
      // eslint-disable-next-line no-control-regex
      .replaceAll(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\p{Cs}]/gu, "\ufffd")
      .replaceAll("&", "&amp;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;")
      .replaceAll('"', "&quot;")
  );
}
