/** One drawing interface for canvas and SVG. */

export interface TextStyle {
  size?: number;
  fill: string;
  anchor?: "start" | "middle" | "end";
  weight?: number;
}

export interface Stroke {
  color: string;
  thickness: number;
  opacity: number;
  dash: number[]; // empty for a solid line
}

export interface Pen {
  rect(x: number, y: number, width: number, height: number, fill: string, radius?: number): void;
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

const FONT_FAMILY = "Inter Variable, system-ui, sans-serif";

export class CanvasPen implements Pen {
  #fill = ""; // the last values set: assigning them is slow, because the browser parses them
  #font = "";

  constructor(readonly context: CanvasRenderingContext2D) {}

  #setFill(fill: string): void {
    if (fill !== this.#fill) this.context.fillStyle = this.#fill = fill;
  }

  rect(x: number, y: number, width: number, height: number, fill: string, radius = 0): void {
    this.#setFill(fill);
    if (radius === 0) this.context.fillRect(x, y, width, height);
    else {
      this.context.beginPath();
      this.context.roundRect(x, y, width, height, radius);
      this.context.fill();
    }
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
    { size = 13, fill, anchor = "start", weight = 400 }: TextStyle,
  ): void {
    const font = `${weight} ${size}px ${FONT_FAMILY}`;
    if (font !== this.#font) this.context.font = this.#font = font;
    this.#setFill(fill);
    this.context.textAlign = anchor === "middle" ? "center" : anchor;
    this.context.textBaseline = "middle";
    this.context.fillText(text, x, y);
  }

  image(x: number, y: number, width: number, height: number, image: HTMLCanvasElement): void {
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(image, x, y, width, height);
  }
}

export class SvgPen implements Pen {
  #parts: string[] = [];

  rect(x: number, y: number, width: number, height: number, fill: string, radius = 0): void {
    this.#add("rect", { x, y, width, height, fill, ...(radius && { rx: radius }) });
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
    { size = 13, fill, anchor = "start", weight = 400 }: TextStyle,
  ): void {
    const position = { x, y, fill, "font-size": size, "font-weight": weight, "text-anchor": anchor };
    this.#add("text", { ...position, "dominant-baseline": "central" }, escape(text));
  }

  image(x: number, y: number, width: number, height: number, image: HTMLCanvasElement): void {
    const href = image.toDataURL("image/png");
    const position = { x, y, width, height, preserveAspectRatio: "none" };
    this.#add("image", { ...position, "image-rendering": "pixelated", href });
  }

  finish(width: number, height: number): string {
    const viewBox = `0 0 ${r(width)} ${r(height)}`;
    const start = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${viewBox}" font-family="${FONT_FAMILY}">`;
    return `${start}\n${this.#parts.join("\n")}\n</svg>\n`;
  }

  #add(tag: string, attributes: Record<string, string | number>, content = ""): void {
    const list = Object.entries(attributes).map(
      ([name, value]) => ` ${name}="${typeof value === "number" ? r(value) : escape(value)}"`,
    );
    this.#parts.push(`<${tag}${list.join("")}${content === "" ? "/>" : `>${content}</${tag}>`}`);
  }
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
