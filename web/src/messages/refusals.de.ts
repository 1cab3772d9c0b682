/** Fehlermeldungen des Servers auf Deutsch, nach ihrem Code; den englischen Text liefert der Server. */

import { count } from "./format.svelte";
import type { Messages } from "./en";

const KINDS: Record<string, [thing: string, all: string]> = {
  block: ["Block", "die Blöcke"],
  column: ["Spalte", "die Spalten"],
  head: ["Kopf", "die Köpfe"],
  position: ["Position", "die Positionen"],
  row: ["Zeile", "die Zeilen"],
  token: ["Token", "die Tokens"],
};

const n = (value: string | number | undefined) => count(Number(value), "de");

export const REFUSALS: Messages["refusals"] = {
  unreachable: () => "Der Server ist nicht erreichbar.",
  busy: () => "Der Server ist ausgelastet. Versuche es gleich noch einmal.",
  internal_error: () => "Interner Fehler in Clearhead. Die Ausgabe des Servers enthält Einzelheiten.",
  too_large: () => "Die Anfrage an den Server ist zu groß.",
  too_slow: () => "Die Anfrage kam nicht rechtzeitig beim Server an.",
  missing_package: ({ package: name, install }) => `Dafür muss ${name} installiert sein: ${install}`,

  model_not_found: ({ name }) => `Ein Modell „${name}“ gibt es hier nicht.`,
  no_held_out_text: ({ name }) =>
    `${name} enthält keinen zurückgehaltenen Text: Gib einen Text an, mit dem es nicht trainiert wurde.`,
  model_not_open: () => "Das Modell ist nicht geladen.",
  model_not_loaded: ({ name, reason = "" }) =>
    `„${name}“ konnte nicht geladen werden${reason === "" ? "." : `: ${reason}`}`,
  weights_not_loaded: ({ file, reason }) =>
    `${file} konnte nicht geladen werden (${reason}). Prüfe die Verbindung und lade die Seite neu.`,
  host_unreachable: ({ file, reason }) =>
    `${file} konnte nicht geladen werden (${reason}). Prüfe die Verbindung und lade die Seite neu.`,
  model_not_stored: ({ name }) =>
    `${name} wurde in diesem Browser noch nie geladen. Dafür ist einmal eine Netzverbindung nötig.`,
  weights_damaged: ({ file }) =>
    `${file} ist beschädigt oder unvollständig. Lade die Seite neu. Hilft das nicht, muss sie noch einmal veröffentlicht werden.`,
  engine_stopped: ({ reason }) => `Die Berechnung im Browser wurde beendet (${reason}). Lade die Seite neu.`,
  no_memory: ({ megabytes }) =>
    `Dieses Modell braucht ${n(megabytes)} MB Speicher, mehr als dieser Browser erlaubt. Wähle ein kleineres.`,
  needs_python: () => "Dafür muss Clearhead auf einem Computer installiert sein: pip install clearhead",
  no_heads: ({ name, kind }) => `${name} ist ein Modell der Art ${kind} und hat keine Aufmerksamkeitsköpfe.`,
  model_missing: () => "Dieses Experiment untersucht ein Modell: Wähle eines aus.",
  already_pulling: ({ name }) =>
    `${name} wird gerade heruntergeladen. Es kann immer nur ein Modell auf einmal heruntergeladen werden.`,

  texts_differ_in_length: ({ other, count }) =>
    `Der andere Text hat ${n(other)} Tokens und dieser ${n(count)}: Zum Übernehmen müssen beide gleich viele haben.`,
  text_empty: () => "Der Text ist leer: Gib mindestens ein Zeichen ein.",
  one_token: () => "Ein Text aus einem Token hat kein nächstes Token: Zum Lernen braucht es mindestens zwei.",
  too_many_parameters: ({ count, most }) =>
    `Das Modell hat ${n(count)} Parameter; ein Trainingsschritt wird für höchstens ${n(most)} berechnet.`,
  text_too_long: ({ most }) => `Der Text ist zu lang: Erlaubt sind höchstens ${n(most)} Zeichen.`,
  context_length_exceeded: ({ count, most }) =>
    `Der Text hat ${n(count)} Tokens; der Kontext dieses Modells fasst höchstens ${n(most)}.`,
  too_many_tokens: ({ count, most }) =>
    `Das sind ${n(count)} Tokens; erlaubt sind hier höchstens ${n(most)}.`,
  too_many_texts: ({ count, most }) =>
    `Die Änderungen übernehmen Aktivierungen aus ${n(count)} Texten; erlaubt sind höchstens ${n(most)}.`,
  character_unknown: ({ character }) =>
    `Das Zeichen „${character}“ kennt dieses Modell nicht: Lass es weg oder trainiere ein Modell mit dem Tokenizer byte oder bpe.`,

  site_unknown: ({ site }) => `Eine Stelle „${site}“ gibt es in diesem Modell nicht.`,
  no_such_number: ({ what, number, last }) => {
    const [thing, all] = KINDS[String(what)] ?? [String(what), String(what)];
    return `${thing} ${number} gibt es nicht: Möglich sind ${all} 0 bis ${last}.`;
  },
  edit_does_not_fit: ({ site }) => `Eine Änderung an ${site} passt nicht zu diesem Text.`,
  word_missing: ({ word }) => `„${word}“ kommt in diesem Text nicht vor.`,
  word_too_rare: ({ word, count }) =>
    `„${word}“ kommt in diesen Sätzen ${count === 0 ? "nicht" : "nur einmal"} vor: Es muss mindestens zweimal vorkommen.`,
  not_one_token: ({ word, count }) =>
    `„${word}“ besteht für dieses Modell aus ${n(count)} Tokens: Gib ein Wort ein, das ein einziges Token ist.`,
  different_sites: () => "Die beiden Modelle haben verschiedene Formen und lassen sich nicht vergleichen.",
  nothing_in_common: () => "Die beiden Texte haben kein Token gemeinsam und lassen sich nicht vergleichen.",

  name_taken: ({ name }) => `„${name}“ gibt es schon: Wähle einen anderen Namen.`,
  already_training: () => "Es läuft bereits ein Training. Es kann immer nur ein Lauf aktiv sein.",
  step_not_kept: ({ name, step }) =>
    `Schritt ${n(step)} des Laufs „${name}“ lässt sich nicht noch einmal berechnen: Der Zwischenstand davor fehlt oder hängt von mehreren Prozessen ab.`,
  run_text_missing: ({ name, step }) =>
    `Der Trainingstext des Laufs „${name}“ ist nicht auf diesem Rechner, deshalb lässt sich Schritt ${n(step)} nicht noch einmal berechnen. Um zu sehen, welche Texte einen Kopf bewegen, trainiere ein eigenes Modell mit Zwischenständen: clearhead train mein.txt --snapshots 5`,
  head_not_found: ({ block, head }) => `Kopf ${block}.${head} gibt es in diesem Lauf nicht.`,
  run_not_found: ({ name }) => `Einen Lauf „${name}“ gibt es nicht.`,
  run_is_finished: ({ name }) =>
    `Der Lauf „${name}“ ist fertig. Um ihn zu verlängern, gib eine Zahl von Minuten an.`,
  run_is_not_finished: ({ name }) =>
    `Der Lauf „${name}“ ist noch nicht fertig. Setze ihn ohne Minutenangabe fort und verlängere ihn danach.`,
  run_is_not_extendable: ({ name }) =>
    `Zum Lauf „${name}“ gibt es keinen Zwischenstand, von dem aus er verlängert werden könnte. Starte einen neuen Lauf.`,
  run_is_a_teacher: ({ name, student }) =>
    `Der Lauf „${name}“ ist ein Lehrer von „${student}“: Setze stattdessen „${student}“ fort oder verlängere diesen Lauf.`,
  started_elsewhere: ({ name }) =>
    `Der Lauf „${name}“ wurde anderswo gestartet: Halte ihn dort an oder setze ihn dort fort.`,
  cannot_be_trained: () => "Dieser Server kann keine Modelle trainieren.",
  training_text_short: ({ count, context, least }) =>
    `Der Text hat ${n(count)} Tokens; ein Kontext von ${n(context)} braucht mindestens ${n(least)}: Nimm mehr Text oder einen kürzeren Kontext.`,
  validation_empty: () => "Für die Validierung bleibt kein Text übrig: Nimm mehr Text.",
  width_uneven: ({ width, heads, lower, upper }) =>
    `Eine Breite von ${n(width)} lässt sich nicht gleichmäßig auf ${n(heads)} Köpfe verteilen: Nimm ${n(lower)} oder ${n(upper)} oder eine andere Anzahl von Köpfen.`,
  memory_short: ({ needed, there }) =>
    `Das braucht etwa ${n(needed)} GB Speicher, verfügbar sind ${n(there)} GB: Nimm weniger Blöcke, eine kleinere Breite oder einen kürzeren Kontext.`,
};
