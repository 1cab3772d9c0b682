/** Answers to the questions of the lectures. */

const NUMBER = /^[+-]?(\d{1,20}(\.\d{0,20})?|\.\d{1,20})$/;
const GROUPED = /^[+-]?\d{1,3}([.,]\d{3})+$/; // such as 2,048

/** What a typed text can mean: a number with a decimal point or comma, a fraction such as 3/8, a percentage, or an
 * integer in groups of three digits. Empty for anything else. */
export function parseAnswer(text: string): number[] {
  const typed = text.replaceAll("−", "-").replaceAll(/\s/g, "");
  const unit = typed.endsWith("%") ? 100 : 1;
  const parts = typed.replace(/%$/, "").split("/");
  const isNumber = (part: string) => NUMBER.test(part.replace(",", "."));
  const read = (part: string) => Number(part.replace(",", "."));
  const readings =
    parts.length <= 2 && parts.every(isNumber) ? [parts.map(read).reduce((a, b) => a / b)] : [];
  if (GROUPED.test(typed)) readings.push(Number(typed.replaceAll(/[.,]/g, "")));
  return readings.filter(Number.isFinite).map((reading) => reading / unit);
}

const ROUNDED = 0.006; // two decimals are enough

/** Whether a reading is the answer: whole numbers exactly, others up to rounding. */
export function isAnswer(typed: number[], answer: number): boolean {
  const tolerance = Number.isInteger(answer) ? 1e-9 : ROUNDED;
  return typed.some((reading) => Math.abs(reading - answer) <= tolerance);
}
