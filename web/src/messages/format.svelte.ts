/** Formats numbers and tokens for display. Numbers have a real minus sign, so that columns align. */

/** The language that numbers are formatted in. */
export const locale = $state({ language: "en" });

/** Replaces the decimal point if the language uses a comma. */
export function localizeDecimal(number: string | number): string {
  return locale.language === "de" ? String(number).replace(".", ",") : String(number);
}

/** About three significant digits, for cells. */
export function short(x: number): string {
  const size = Math.abs(x);
  return fixed(x, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

/** As in cells, but with two significant digits even for small numbers. */
export function precise(x: number): string {
  const size = Math.abs(x);
  if (!Number.isFinite(x) || size === 0 || size >= 0.0995) return short(x);
  if (size >= 0.00095) return fixed(x, size >= 0.00995 ? 3 : 4);
  const [digits, power] = size.toExponential(1).split("e");
  return `${x < 0 ? "−" : ""}${localizeDecimal(digits!)}e${power!.replace("-", "−")}`;
}

/** With a fixed number of decimals. */
export function fixed(x: number, digits: number): string {
  if (Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const text = Math.abs(x).toFixed(digits);
  return `${x < 0 && Number(text) !== 0 ? "−" : ""}${localizeDecimal(text)}`;
}

/** Such as 88%, 4.2%, <0.1% or >99.9%, with at least `decimals` decimals. Only 0 is shown as 0%, and only 1 as 100%.
 * In German, a narrow no-break space precedes the sign. */
export function percent(p: number, decimals = 0): string {
  const value = 100 * p;
  const most = Math.max(decimals, 1);
  const unit = 10 ** -most;
  const isRounded = (value > 0 && value < 9.95) || (value < 100 && value >= 99.5);
  let shown = fixed(value, isRounded ? most : decimals);
  if (value > 0 && value < unit / 2) shown = `<${fixed(unit, most)}`;
  if (value < 100 && value >= 100 - unit / 2) shown = `>${fixed(100 - unit, most)}`;
  return `${shown}${locale.language === "de" ? "\u202f" : ""}%`;
}

/** A vector such as [0.5, 1]; numbers with a decimal comma are separated by semicolons. */
export function vector(values: readonly number[], format: (value: number) => string): string {
  return `[${values.map(format).join(locale.language === "de" ? "; " : ", ")}]`;
}

/** At most four decimals, and none for a whole number. */
export function compact(x: number): string {
  if (x !== 0 && Math.abs(x) < 0.00095) return precise(x);
  return fixed(x, [0, 1, 2, 3].find((digits) => Math.abs(Number(x.toFixed(digits)) - x) < 1e-12) ?? 4);
}

/** With thousands separators, such as 134,515,008. */
export function count(n: number, language: string): string {
  return new Intl.NumberFormat(language).format(n);
}

const SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉";

/** A token of a text for display, with its position if the text has several of its kind: “it” or “.₅”. */
export function positionLabel(tokens: readonly string[], row: number): string {
  const token = tokens[row] ?? "";
  const label = tokenLabel(token);
  if (tokens.indexOf(token) === tokens.lastIndexOf(token)) return label;
  return label + String(row).replace(/\d/g, (digit) => SUBSCRIPTS[Number(digit)]!);
}

/** A token for display, the same wherever it is named. Control characters, and spaces at its start and end, become visible,
 * because " b" and "b" are two tokens. */
export function tokenLabel(token: string): string {
  return (
    token
      .replaceAll("\n", "⏎")
      .replaceAll("\t", "⇥")
      // eslint-disable-next-line no-control-regex
      .replaceAll(/[\x00-\x1f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)))
      .replaceAll(/^ +| +$/g, (spaces) => "␣".repeat(spaces.length))
  );
}

/** Explains a token that is only part of a character, such as \xc3; undefined for other tokens. */
export function byteHint(words: { byteToken: (token: string) => string }, token: string): string | undefined {
  return /\\x[0-9a-f]{2}/.test(token) ? words.byteToken(token) : undefined;
}
