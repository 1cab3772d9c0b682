/** Drawing on a canvas or into an SVG file, by the isSameCell functions. */

export interface TextStyle {
  size?: number;
  fill: string;
  anchor?: "start" | "middle" | "end";
  weight?: number;
}

export interface Stroke {
  color: string;
  thick: number;
  opacity: number;
  dash: number[]; // none where it is whole
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
    thick?: number,
  ): void;
  line(x1: number, y1: number, x2: number, y2: number, stroke: string, thick: number): void;
  /** From left to right, level at both ends. */
  curve(x1: number, y1: number, x2: number, y2: number, stroke: string, thick: number, opacity: number): void;
  circle(x: number, y: number, radius: number, stroke: string, fill: string, opacity?: number): void;
  /** A line of any form, in SVG's words, moved by x and y. */
  path(x: number, y: number, d: string, stroke: Stroke): void;
  text(x: number, y: number, text: string, style: TextStyle): void;
  /** Its pixels stay squares. */
  image(x: number, y: number, width: number, height: number, image: HTMLCanvasElement): void;
}

const FAMILY = "Inter Variable, system-ui, sans-serif";

export class CanvasPen implements Pen {
  #fill = ""; // set where it changes: the browser reads it anew each time
  #font = "";

  constructor(readonly on: CanvasRenderingContext2D) {}

  #dip(fill: string): void {
    if (fill !== this.#fill) this.on.fillStyle = this.#fill = fill;
  }

  rect(x: number, y: number, width: number, height: number, fill: string, radius = 0): void {
    this.#dip(fill);
    if (radius === 0) this.on.fillRect(x, y, width, height);
    else {
      this.on.beginPath();
      this.on.roundRect(x, y, width, height, radius);
      this.on.fill();
    }
  }

  frame(x: number, y: number, width: number, height: number, stroke: string, radius = 0, thick = 1): void {
    this.on.strokeStyle = stroke;
    this.on.lineWidth = thick;
    this.on.beginPath();
    this.on.roundRect(x, y, width, height, radius);
    this.on.stroke();
  }

  line(x1: number, y1: number, x2: number, y2: number, stroke: string, thick: number): void {
    this.on.strokeStyle = stroke;
    this.on.lineWidth = thick;
    this.on.beginPath();
    this.on.moveTo(x1, y1);
    this.on.lineTo(x2, y2);
    this.on.stroke();
  }

  curve(
    x1: number,
    y1: number,
    x2: number,
    y2: number,
    stroke: string,
    thick: number,
    opacity: number,
  ): void {
    this.on.globalAlpha = opacity;
    this.on.strokeStyle = stroke;
    this.on.lineWidth = thick;
    const middle = (x1 + x2) / 2;
    this.on.beginPath();
    this.on.moveTo(x1, y1);
    this.on.bezierCurveTo(middle, y1, middle, y2, x2, y2);
    this.on.stroke();
    this.on.globalAlpha = 1;
  }

  circle(x: number, y: number, radius: number, stroke: string, fill: string, opacity = 1): void {
    this.on.globalAlpha = opacity;
    this.on.beginPath();
    this.on.arc(x, y, radius, 0, 2 * Math.PI);
    this.#dip(fill);
    this.on.fill();
    if (stroke !== "none") {
      this.on.strokeStyle = stroke;
      this.on.lineWidth = 1.25;
      this.on.stroke();
    }
    this.on.globalAlpha = 1;
  }

  path(x: number, y: number, d: string, { color, thick, opacity, dash }: Stroke): void {
    this.on.save();
    this.on.translate(x, y);
    this.on.globalAlpha = opacity;
    this.on.strokeStyle = color;
    this.on.lineWidth = thick;
    this.on.setLineDash(dash);
    this.on.stroke(new Path2D(d));
    this.on.restore();
  }

  text(
    x: number,
    y: number,
    text: string,
    { size = 13, fill, anchor = "start", weight = 400 }: TextStyle,
  ): void {
    const font = `${weight} ${size}px ${FAMILY}`;
    if (font !== this.#font) this.on.font = this.#font = font;
    this.#dip(fill);
    this.on.textAlign = anchor === "middle" ? "center" : anchor;
    this.on.textBaseline = "middle";
    this.on.fillText(text, x, y);
  }

  image(x: number, y: number, width: number, height: number, image: HTMLCanvasElement): void {
    this.on.imageSmoothingEnabled = false;
    this.on.drawImage(image, x, y, width, height);
  }
}

export class SvgPen implements Pen {
  #parts: string[] = [];

  rect(x: number, y: number, width: number, height: number, fill: string, radius = 0): void {
    this.#put("rect", { x, y, width, height, fill, ...(radius && { rx: radius }) });
  }

  frame(x: number, y: number, width: number, height: number, stroke: string, radius = 0, thick = 1): void {
    this.#put("rect", { x, y, width, height, rx: radius, fill: "none", stroke, "stroke-width": thick });
  }

  line(x1: number, y1: number, x2: number, y2: number, stroke: string, thick: number): void {
    this.#put("line", { x1, y1, x2, y2, stroke, "stroke-width": thick });
  }

  curve(
    x1: number,
    y1: number,
    x2: number,
    y2: number,
    stroke: string,
    thick: number,
    opacity: number,
  ): void {
    const middle = (x1 + x2) / 2;
    const d = `M${r(x1)} ${r(y1)}C${r(middle)} ${r(y1)} ${r(middle)} ${r(y2)} ${r(x2)} ${r(y2)}`;
    this.#put("path", { d, fill: "none", stroke, "stroke-width": thick, opacity });
  }

  circle(x: number, y: number, radius: number, stroke: string, fill: string, opacity = 1): void {
    this.#put("circle", { cx: x, cy: y, r: radius, stroke, fill, ...(opacity < 1 && { opacity }) });
  }

  path(x: number, y: number, d: string, { color, thick, opacity, dash }: Stroke): void {
    const style = { fill: "none", stroke: color, "stroke-width": thick, opacity };
    const broken = dash.length > 0 && { "stroke-dasharray": dash.join(" ") };
    this.#put("path", { d, transform: `translate(${r(x)} ${r(y)})`, ...style, ...broken });
  }

  text(
    x: number,
    y: number,
    text: string,
    { size = 13, fill, anchor = "start", weight = 400 }: TextStyle,
  ): void {
    const place = { x, y, fill, "font-size": size, "font-weight": weight, "text-anchor": anchor };
    this.#put("text", { ...place, "dominant-baseline": "central" }, escape(text));
  }

  image(x: number, y: number, width: number, height: number, image: HTMLCanvasElement): void {
    const href = image.toDataURL("image/png");
    const place = { x, y, width, height, preserveAspectRatio: "none" };
    this.#put("image", { ...place, "image-rendering": "pixelated", href });
  }

  finish(width: number, height: number): string {
    const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${r(width)} ${r(height)}" font-family="${FAMILY}">`;
    return `${head}\n${this.#parts.join("\n")}\n</svg>\n`;
  }

  #put(tag: string, attributes: Record<string, string | number>, inside = ""): void {
    const list = Object.entries(attributes).map(
      ([name, value]) => ` ${name}="${typeof value === "number" ? r(value) : escape(value)}"`,
    );
    this.#parts.push(`<${tag}${list.join("")}${inside === "" ? "/>" : `>${inside}</${tag}>`}`);
  }
}

function r(number: number): string {
  return String(Math.round(100 * number) / 100);
}

/** As XML takes it, which has no room for control characters and halves of characters. */
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
