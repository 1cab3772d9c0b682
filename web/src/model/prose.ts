/** Formulas within sentences. */

export interface Fragment {
  text: string;
  math: boolean; // whether the text is TeX
}

/** How the server, whose texts are also for terminals, writes formulas. */
const PLAIN: Record<string, string> = {
  "√d_k": "$\\sqrt{d_k}$",
  "√d": "$\\sqrt{d}$",
  "w (1 − w)": "$w (1 - w)$",
};

/** A sentence as plain text, for names that appear only in tooltips or are read by screen readers. */
export function plainProse(sentence: string): string {
  return sentence.replaceAll("$", "").replaceAll(/\\sqrt\{([^}]*)\}/g, "√$1");
}

/** Splits a sentence with formulas between dollar signs. */
export function splitProse(sentence: string): Fragment[] {
  return sentence
    .replaceAll(/√d(_k)?|w \(1 − w\)/g, (plain) => PLAIN[plain]!)
    .split("$")
    .map((text, i) => ({ text, math: i % 2 === 1 }))
    .filter(({ text }) => text !== "");
}
