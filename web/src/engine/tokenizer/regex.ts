/** Translates Oniguruma's regular expressions, which tokenizer.json contains, to JavaScript's.
 *
 * They differ in what \s and \w match, in `.`, `^` and `$`, and in possessive quantifiers, atomic groups and
 * case-insensitive groups, which not every browser has. Characters that were added in Unicode 16 or later may be
 * classified differently, depending on the browser.
 */

import { unsupported } from "./file";

const SPACE = "\\p{White_Space}";
const WORD = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\xb2\\xb3\\xb9\\xbc-\\xbe";
// The content of each set, and of the set of all other characters; null if that needs brackets of its own.
const SETS: Record<string, [string, string | null]> = {
  s: [SPACE, "\\P{White_Space}"],
  d: ["\\p{Nd}", "\\P{Nd}"],
  w: [WORD, null],
  h: ["0-9a-fA-F", null],
};
const CHARACTERS: Record<string, string> = {
  n: "\n",
  r: "\r",
  t: "\t",
  f: "\f",
  v: "\v",
  a: "\x07",
  e: "\x1b",
};
const CATEGORY = /^(?:C[cfo]?|L[ulmot]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?)$/;
const QUANTIFIER = /([*+?])([?+]?)|\{(?=,?\d)(\d*)(,?)(\d*)\}(\??)/y;
const FLAGS = /\(\?(-?i)([:)])/y;
const GROUP = /\((?:\?(?::|=|!|<=|<!|>|<\w+>))?/y;
const PROPERTY = /\\([pP])\{(\^?)(\w+)\}/y;
const CODE = /\\(?:x\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4}))/y;

/** The same regular expression in JavaScript, with the flags `g` and `u`. */
export function translateRegex(pattern: string): RegExp {
  const translator = new Translator(pattern);
  try {
    return new RegExp(translator.translate(), "gu");
  } catch (error) {
    if (error instanceof SyntaxError) return translator.refuse();
    throw error;
  }
}

class Translator {
  #at = 0;
  #atomicGroups = 0;
  constructor(readonly pattern: string) {}

  translate(): string {
    const translated = this.#parseAlternatives(false);
    return this.#at < this.pattern.length ? this.refuse() : translated;
  }

  refuse(): never {
    return unsupported(`the regular expression ${JSON.stringify(this.pattern.slice(0, 200))}`);
  }

  /** Matches the pattern from here on, and moves past the match. */
  #take(regex: RegExp): RegExpExecArray | null {
    regex.lastIndex = this.#at;
    const match = regex.exec(this.pattern);
    if (match) this.#at = regex.lastIndex;
    return match;
  }

  #takeCharacter(): string {
    const code = this.pattern.codePointAt(this.#at) ?? this.refuse();
    const character = String.fromCodePoint(code);
    this.#at += character.length;
    return character;
  }

  #parseAlternatives(ignoreCase: boolean): string {
    let translated = "";
    while (this.#at < this.pattern.length && this.pattern[this.#at] !== ")") {
      if (this.pattern[this.#at] === "|") translated += this.#takeCharacter();
      else translated += this.#parseQuantified(ignoreCase);
    }
    return translated;
  }

  #parseQuantified(ignoreCase: boolean): string {
    let atom = this.#parseAtom(ignoreCase);
    for (let quantifier; (quantifier = this.#take(QUANTIFIER));) {
      const [, sign, mode, least, comma, most, lazy] = quantifier;
      if (sign) {
        const repeated = atom + sign;
        atom = mode === "+" ? this.#makeAtomic(repeated) : `(?:${repeated}${mode})`;
      } else {
        const repeated = `${atom}{${least || 0}${comma}${most}}`;
        atom = lazy && !comma ? `(?:(?:${repeated})?)` : `(?:${repeated}${lazy})`;
      }
    }
    return atom;
  }

  /** A group that is never entered again once it has matched: a lookahead keeps its first match. */
  #makeAtomic(inner: string): string {
    const name = `atomic${this.#atomicGroups++}`;
    return `(?:(?=(?<${name}>${inner}))\\k<${name}>)`;
  }

  #parseAtom(ignoreCase: boolean): string {
    switch (this.pattern[this.#at]) {
      case "(":
        return this.#parseGroup(ignoreCase);
      case "[":
        return this.#parseClass(ignoreCase);
      case "\\":
        return this.#parseEscape(ignoreCase);
      case ".":
        this.#at++;
        return "[^\\n]";
      case "^":
        this.#at++;
        return "(?<![^\\n])";
      case "$":
        this.#at++;
        return "(?![^\\n])";
      default:
        return this.#spell(this.#takeCharacter(), ignoreCase);
    }
  }

  #parseGroup(ignoreCase: boolean): string {
    const flags = this.#take(FLAGS);
    if (flags) {
      const inner = this.#parseAlternatives(flags[1] === "i");
      if (flags[2] === ":") this.#close();
      return `(?:${inner})`;
    }
    const opening = this.#take(GROUP)![0];
    if (this.pattern[this.#at] === "?") return this.refuse();
    const inner = this.#parseAlternatives(ignoreCase);
    this.#close();
    if (opening === "(?>") return this.#makeAtomic(inner);
    return /^\(\?(?:=|!|<=|<!)$/.test(opening) ? `${opening}${inner})` : `(?:${inner})`;
  }

  #close(): void {
    if (this.pattern[this.#at++] !== ")") this.refuse();
  }

  #parseEscape(ignoreCase: boolean): string {
    const set = this.#takeSet();
    if (set) return set.excluded ? `[^${set.content}]` : `[${set.content}]`;
    if (this.#take(/\\A/y)) return "(?<![^])";
    if (this.#take(/\\z/y)) return "(?![^])";
    return this.#spell(this.#takeEscaped(), ignoreCase);
  }

  /** A set of characters such as \s or \p{L}, as the content of a class. */
  #takeSet(): { content: string; excluded: boolean } | null {
    const property = this.#take(PROPERTY);
    if (property) {
      const [, letter, negated, name] = property as unknown as [string, string, string, string];
      const canonical = name[0]!.toUpperCase() + name.slice(1).toLowerCase();
      const content = CATEGORY.test(canonical) ? canonical : `Script=${canonical}`;
      return {
        content: `\\${(letter === "P") !== (negated === "^") ? "P" : "p"}{${content}}`,
        excluded: false,
      };
    }
    const letter = this.#take(/\\([sdwhSDWH])/y)?.[1];
    if (!letter) return null;
    const [content, others] = SETS[letter.toLowerCase()]!;
    if (letter === letter.toLowerCase()) return { content, excluded: false };
    return others === null ? { content, excluded: true } : { content: others, excluded: false };
  }

  #takeEscaped(): string {
    const code = this.#take(CODE);
    if (code) return String.fromCodePoint(parseInt(code[1] ?? code[2] ?? code[3]!, 16));
    this.#at++;
    const character = this.#takeCharacter();
    return CHARACTERS[character] ?? (/\w/.test(character) ? this.refuse() : character);
  }

  #parseClass(ignoreCase: boolean): string {
    let content = this.#take(/\[\^/y) ? "[^" : (this.#at++, "[");
    for (let first = true; first || this.pattern[this.#at] !== "]"; first = false) {
      const set = this.#takeSet();
      if (set) content += set.excluded ? this.refuse() : set.content;
      else content += this.#parseRange(ignoreCase);
    }
    this.#at++;
    return `${content}]`;
  }

  #parseRange(ignoreCase: boolean): string {
    const first = this.#parseMember();
    if (!this.#take(/-(?!\])/y)) return ignoreCase ? spellVariants(first, this) : spellMember(first);
    const last = this.#parseMember();
    return ignoreCase ? this.refuse() : `${spellMember(first)}-${spellMember(last)}`;
  }

  #parseMember(): string {
    if (this.pattern[this.#at] === "\\") return this.#takeEscaped();
    const character = this.#takeCharacter();
    const nested = character === "[" || (character === "&" && this.pattern[this.#at] === "&");
    return nested ? this.refuse() : character;
  }

  #spell(character: string, ignoreCase: boolean): string {
    if (ignoreCase && character.toLowerCase() !== character.toUpperCase())
      return `[${spellVariants(character, this)}]`;
    return /[\^$\\.*+?()[\]{}|/]/.test(character) ? `\\${character}` : character;
  }
}

function spellMember(character: string): string {
  return /[\^\\[\]-]/.test(character) ? `\\${character}` : character;
}

/** A letter in both cases, with the two characters outside ASCII that fold to an ASCII letter. */
function spellVariants(character: string, translator: Translator): string {
  if (character > "\x7f") translator.refuse();
  const folded = character.toLowerCase();
  const more = { k: "\u212a", s: "\u017f" }[folded] ?? "";
  return [...new Set([folded, character.toUpperCase()])].map(spellMember).join("") + more;
}
