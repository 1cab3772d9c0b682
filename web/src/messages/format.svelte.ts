/** Numbers as they are shown, in the locale's language. The sign is a real minus, so that columns line up. */

/** The language numbers are written in; everything on the page updates when it changes. */
export const locale = $state({ language: "en" });

/** A number as it is, or as it is written already, with a comma where the locale's language has one. */
export function localizeDecimal(number: string | number): string {
  return locale.language === "de" ? String(number).replace(".", ",") : String(number);
}

/** About three digits, in a cell. */
export function short(x: number): string {
  const size = Math.abs(x);
  return fixed(x, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

/** So that a small one can be read too: two digits at least that say something. */
export function precise(x: number): string {
  const size = Math.abs(x);
  if (!Number.isFinite(x) || size === 0 || size >= 0.0995) return fixed(x, 2);
  if (size >= 0.00095) return fixed(x, size >= 0.00995 ? 3 : 4);
  const [digits, power] = size.toExponential(1).split("e");
  return `${x < 0 ? "−" : ""}${localizeDecimal(digits!)}e${power!.replace("-", "−")}`;
}

/** With so many digits after the point. */
export function fixed(x: number, digits: number): string {
  if (Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const text = Math.abs(x).toFixed(digits);
  return `${x < 0 && Number(text) !== 0 ? "−" : ""}${localizeDecimal(text)}`;
}

/** Such as 88% or 0.4%: what is small keeps a digit. */
export function percent(p: number): string {
  const hundredths = 100 * p;
  return `${fixed(hundredths, hundredths >= 9.95 || hundredths === 0 ? 0 : hundredths >= 0.095 ? 1 : 2)}%`;
}

/** 1,024 and 134,515,008, in the locale's language. */
export function count(n: number, language: string): string {
  return new Intl.NumberFormat(language).format(n);
}

/** What a token looks like where it stands alone: what cannot be seen is drawn. */
export function tokenLabel(token: string): string {
  const drawn = token
    .replaceAll("\n", "⏎")
    .replaceAll("\t", "⇥")
    // eslint-disable-next-line no-control-regex
    .replaceAll(/[\x00-\x1f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)));
  const trimmed = drawn.replace(/^ /, "");
  return trimmed === "" || trimmed.startsWith(" ") || trimmed.endsWith(" ")
    ? drawn.replaceAll(" ", "␣")
    : trimmed;
}

/** The isSameCell, with a space before it drawn too: " b" and "b" are two words. */
export function exactTokenLabel(token: string): string {
  const text = tokenLabel(token);
  return token.startsWith(" ") && !text.startsWith("␣") ? `␣${text}` : text;
}
