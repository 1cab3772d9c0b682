/** Was der Server ablehnt, auf Deutsch; auf Englisch sagt er es selbst. */

import { count } from "./format.svelte";
import type { Messages } from "./en";

const KINDS: Record<string, [thing: string, all: string]> = {
  block: ["Einen Block", "Blöcke"],
  column: ["Eine Spalte", "Spalten"],
  head: ["Einen Kopf", "Köpfe"],
  position: ["Eine Stelle", "Stellen"],
  row: ["Eine Zeile", "Zeilen"],
  token: ["Ein Token", "Token"],
};

const n = (value: string | number | undefined) => count(Number(value), "de");

export const REFUSALS: Messages["refusals"] = {
  unreachable: () => "Der Server ist nicht zu erreichen.",
  busy: () => "Der Server hat gerade zu viel zu tun. Versuche es gleich noch einmal.",
  internal_error: () => "Das war ein Fehler von uns, nicht von dir; die Ausgabe des Servers sagt mehr.",
  too_large: () => "Das ist mehr, als der Server auf einmal nimmt.",
  too_slow: () => "Es kam nicht rechtzeitig beim Server an.",
  missing_package: ({ package: name, install }) => `Dafür muss ${name} installiert sein: ${install}`,

  model_not_found: ({ name }) => `Ein Modell „${name}“ gibt es hier nicht.`,
  model_not_open: () => "Das Modell ist nicht geladen.",
  model_not_loaded: ({ name, reason = "" }) =>
    `„${name}“ konnte nicht geladen werden${reason === "" ? "." : `: ${reason}`}`,
  no_heads: ({ name, kind }) => `${name} ist von der Art ${kind}: Es hat keine Köpfe, die man zeigen könnte.`,
  model_missing: () => "Dieses Experiment schaut in ein Modell: Wähle eines.",
  already_pulling: ({ name }) => `${name} wird gerade geholt: eines nach dem anderen.`,

  text_empty: () => "Der Text ist leer: Ein Zeichen braucht es mindestens.",
  text_too_long: ({ most }) => `Der Text ist zu lang: Höchstens ${n(most)} Zeichen gehen.`,
  context_length_exceeded: ({ count, most }) =>
    `Der Text hat ${n(count)} Token; höchstens ${n(most)} gehen durch dieses Modell.`,
  too_many_tokens: ({ count, most }) => `Das sind ${n(count)} Token; hier gehen höchstens ${n(most)}.`,
  too_many_texts: ({ count, most }) =>
    `Die Änderungen nehmen aus ${n(count)} Texten; höchstens ${n(most)} gehen.`,
  character_unknown: ({ character }) =>
    `Das Zeichen „${character}“ kennt dieses Modell nicht: Lass es weg, oder trainiere mit dem Tokenizer byte oder bpe.`,

  site_unknown: ({ site }) => `Eine Stelle „${site}“ hat dieses Modell nicht.`,
  no_such_number: ({ what, number, last }) => {
    const [thing, all] = KINDS[String(what)] ?? [String(what), String(what)];
    return `${thing} ${number} gibt es nicht: Es gibt ${all} 0 bis ${last}.`;
  },
  edit_does_not_fit: ({ site }) => `Eine Änderung an ${site} passt nicht zu diesem Text.`,
  word_missing: ({ word }) => `„${word}“ kommt in diesem Text nicht vor.`,
  word_seldom: ({ word, count }) =>
    `„${word}“ steht ${count === 0 ? "nirgends" : "nur einmal"} in diesen Sätzen: Zweimal braucht es mindestens.`,
  not_one_token: ({ word, count }) =>
    `„${word}“ ist für dieses Modell nicht ein Token, sondern ${n(count)}: Gib eines, das es als Ganzes kennt.`,
  different_sites: () => "Die beiden Modelle haben verschiedene Formen und lassen sich nicht vergleichen.",
  nothing_in_common: () =>
    "Die beiden Texte haben kein Token gemeinsam: Es gibt nichts, was man vergleichen könnte.",

  name_taken: ({ name }) => `„${name}“ gibt es schon: Wähle einen anderen Namen.`,
  already_training: () => "Ein Lauf wird schon trainiert: einer nach dem anderen.",
  run_not_found: ({ name }) => `Einen Lauf „${name}“ gibt es nicht.`,
  run_is_finished: ({ name }) => `„${name}“ ist fertig: Es gibt nichts fortzusetzen.`,
  begun_elsewhere: ({ name }) =>
    `„${name}“ wurde anderswo begonnen: Dort wird er angehalten und fortgesetzt.`,
  cannot_be_trained: () => "Hier kann nichts trainiert werden.",
  training_text_short: ({ count, context, least }) =>
    `Der Text hat ${n(count)} Token, und ein Kontext von ${n(context)} braucht mindestens ${n(least)}: Nimm mehr Text oder einen kürzeren Kontext.`,
  validation_empty: () => "Zum Prüfen bleibt kein Text übrig: Nimm mehr Text.",
  width_uneven: ({ width, heads, lower, upper }) =>
    `Eine Breite von ${n(width)} lässt sich nicht auf ${n(heads)} Köpfe verteilen: Nimm ${n(lower)} oder ${n(upper)}, oder eine andere Zahl von Köpfen.`,
  memory_short: ({ needed, there }) =>
    `Das braucht etwa ${n(needed)} GB Speicher, und ${n(there)} sind da: Nimm weniger Blöcke, Breite oder Kontext.`,
};
