/** Die Texte der Zeichnung auf Deutsch: Spalten, Köpfe, Matrizen und Vorhersagen. */

import type { diagram as English } from "./diagram.en";

export const diagram: typeof English = {
  matrix: {
    columns: "Spalten",
    rows: "Zeilen",
    range: (name, first, last, total) => `${name} ${first}–${last} von ${total}`,
    back: (name) => `Zu den vorigen ${name}`,
    forth: (name) => `Zu den nächsten ${name}`,
  },
  flow: {
    title: "Vorwärtsdurchlauf",
    tokens: "Tokens",
    embedding: "Einbettung",
    block: (i) => `Block ${i}`,
    blockOf: (i, last) => `Block ${i}. Die Blöcke sind von 0 bis ${last} nummeriert.`,
    norm: "Norm",
    query: "Anfrage",
    key: "Schlüssel",
    value: "Wert",
    attention: (j) => `Aufmerksamkeit · Kopf ${j}`,
    headOf: (j, last) => `Kopf ${j} dieses Blocks. Die Köpfe sind von 0 bis ${last} nummeriert.`,
    feedforward: "Feed-Forward",
    others: (first, last) => (first === last ? `+ Block ${first}` : `+ Blöcke ${first}–${last}`),
    added: (block, token, attention, feedforward) =>
      `Block ${block} bei „${token}“: Die Aufmerksamkeit fügte das ${attention}-Fache und das Feed-Forward-Netz das ${feedforward}-Fache der Länge des eingehenden Vektors hinzu.`,
    read: (token, share) => `Die Logit-Linse liest hier „${token}“ (${share}).`,
    final: "Norm",
    nextWord: "nächstes Wort",
    nextToken: "nächstes Token",
    lastWord: "Wort an der letzten Position",
    previousBlock: "Voriger Block",
    nextBlock: "Nächster Block",
    previousHead: "Voriger Kopf",
    nextHead: "Nächster Kopf",
    pages: (page, count) => `${page} / ${count}`,
    pagesSay: "Nicht alle Spalten passen nebeneinander.",
    previousPage: "Vorige Spalten",
    nextPage: "Nächste Spalten",
    above: (n) => `▴ ${n} weitere`,
    below: (n) => `▾ ${n} weitere`,
  },
  strip: {
    legend: (token) => `Wie viel seiner Aufmerksamkeit „${token}“ im gewählten Kopf auf jedes Token richtet`,
    head: (j) => `Kopf ${j}`,
    weight: (from, to, weight, head) =>
      `„${from}“ richtet ${weight} seiner Aufmerksamkeit auf „${to}“ (${head})`,
  },
  heads: {
    title: "Alle Köpfe",
    label: (block, head) => `Block ${block}, Kopf ${head}`,
    order: "Sortieren nach",
    orders: {
      block: "Block",
      previous: "voriges Token",
      first: "erstes Token",
      repeated: "gleiches Token",
      induction: "Induktion",
      antecedent: "Bezugswort",
    },
    kinds: {
      previous: "achtet auf das vorige Token",
      first: "achtet auf das erste Token",
      repeated: "achtet auf frühere Vorkommen desselben Tokens",
      induction: "achtet auf das, was früher auf dasselbe Token folgte",
      antecedent: "achtet vom Pronomen aus auf dessen Bezugswort",
    },
    block: (i) => `Block ${i}`,
    head: (j) => `Kopf ${j}`,
    description:
      "Eine Zeile je Block, eine Spalte je Kopf. In jedem Muster ist eine Zeile ein Token und eine Spalte ein Token, auf das es achtet; je kräftiger die Farbe, desto mehr Aufmerksamkeit. Klicke auf ein Muster, um es Schritt für Schritt zu sehen.",
    explained: {
      previous:
        "Voriges Token: Aufmerksamkeit eine Position zurück, gleich welche Tokens dort stehen. So erfährt jedes Token, was direkt vor ihm stand.",
      first:
        "Erstes Token: Aufmerksamkeit auf das erste Token, auf dem Köpfe oft ruhen, wenn es nichts zu übertragen gibt.",
      repeated: "Gleiches Token: Aufmerksamkeit auf frühere Vorkommen desselben Tokens.",
      induction:
        "Induktion: Aufmerksamkeit auf das Token nach einem früheren Vorkommen des aktuellen. Nach „A B … A“ findet sie „B“.",
      antecedent:
        "Bezugswort: Aufmerksamkeit von einem Pronomen auf das, wofür es steht, gemessen an Geschichten, in denen das Bezugswort jedes Pronomens bekannt ist.",
    },
    measured:
      "Jeder Wert ist ein mittleres Aufmerksamkeitsgewicht, gemessen an zufälligen, einmal wiederholten Tokens und nicht am Text oben.",
    best: (kind, score) => `${kind}: ${score} seiner Aufmerksamkeit`,
    nothing: "kein bekanntes Muster",
    only: "Nur klare Fälle",
    count: (clear, all) => `: ${clear} von ${all}`,
    onlyHint: (least) =>
      `Nur Köpfe zeigen, die mindestens ${least} ihrer Aufmerksamkeit darauf richten und mindestens doppelt so viel wie bei gleichmäßiger Aufmerksamkeit`,
    none: (least) =>
      `Kein Kopf zeigt dieses Muster deutlich: Keiner richtet mindestens ${least} seiner Aufmerksamkeit darauf und mindestens doppelt so viel wie bei gleichmäßiger Aufmerksamkeit.`,
    finding:
      "Jeder Kopf wird an kleinen Texten mit bekannter Lösung bewertet. Das dauert eine Weile, einmal je Modell …",
    failed: (error) => `Die Köpfe konnten nicht bewertet werden: ${error}`,
    find: "Kopf suchen",
    findHint: (block, head) => `z. B. ${block}.${head}`,
    missed: (block, head) =>
      `Diesen Kopf gibt es nicht. Die Blöcke sind von 0 bis ${block} nummeriert, die Köpfe von 0 bis ${head}. Gib den Namen eines Musters ein, etwa Induktion, um danach zu sortieren.`,
  },
  next: {
    logit: "Logit",
    chance: "Softmax",
    temperature: "Temperatur",
    topK: "Top-k",
    topP: "Top-p",
    minP: "Min-p",
    all: "alle",
    append: (token) => `„${token}“ anhängen`,
    cut: "ausgeschlossen",
    divided: "Logit ÷ T",
    write: "Erzeugen",
    stop: "Anhalten",
    unknown: (words) =>
      `Das Modell hat kein Token für ${words.map((word) => `„${word}“`).join(", ")} und liest ${words.length === 1 ? "es" : "sie"} in kleinen Stücken. Vermutlich kennt das Modell solche Wörter kaum.`,
    context: (n, most) => `${n} von ${most} Tokens im Kontext`,
    slid: (n) => `· die ersten ${n} liegen außerhalb des Kontexts`,
  },
  parts: {
    embedding: "Einbettung",
    norm: "Erste Norm",
    head: "Kopf",
    add: "+ Aufmerksamkeit",
    norm2: "Zweite Norm",
    feedforward: "Feed-Forward",
    add2: "+ Feed-Forward",
    final: "Letzte Norm, Ausgabe",
  },
  titles: {
    block: (part, block) => `Block ${block}: ${part}`,
    head: (block, head, token) => `Block ${block}, Kopf ${head}: von „${token}“ aus`,
  },
  layerNorm: {
    scale:
      "Das ist die Standardabweichung des Vektors jedes Tokens. Nachdem der Mittelwert abgezogen ist, wird der Vektor durch sie dividiert.",
    norm: "Jede Zahl wird zum z-Wert: Mittelwert des Vektors abziehen, durch dessen Standardabweichung dividieren. Dann skaliert eine gelernte Verstärkung $\\gamma$ jede Dimension, und eine gelernte Verschiebung $\\beta$ verschiebt sie. Die Streifen zeigen das für das gewählte Token.",
  },
  normed: {
    title: (token) => `Der Vektor von „${token}“ vor und nach der Norm`,
    stages: {
      layer: { before: "davor", standardized: "z-Werte", after: "danach" },
      rms: { before: "davor", standardized: "skaliert", after: "danach" },
    },
    moments: (mean, deviation) => `Mittelwert ${mean}, Standardabweichung ${deviation}`,
    root: (size) => `quadratisches Mittel ${size}`,
    oneScale: "eine Skala für alle drei",
  },
};
