/** Die Texte der Vergleiche, Änderungen, Wirkungen und der übrigen Werkzeuge auf Deutsch. */

import type { tools as English } from "./tools.en";

export const tools: typeof English = {
  asking: { target: "Ziel-Token" },
  compare: {
    description:
      "Schicke zwei Texte durch ein Modell oder einen Text durch zwei Modelle. Einander entsprechende Tokens werden gepaart, und jede Zahl wird mit ihrem Gegenstück verglichen.",
    text: "Anderer Text",
    hint: "ein anderer Text; leer lassen für denselben",
    model: "Modell",
    same: "dasselbe Modell",
    example: (second, one) => `${one} / ${second}`,
    exampleSays: (one, second) => `Setzt beide Texte: „${one}“ und „${second}“`,
    restore: (text) => `Zurück zu „${text}“`,
    begin: (examples) =>
      `Noch wird nichts verglichen. Gib oben einen anderen Text ein${examples ? ", wähle ein anderes Modell oder klicke eines der Beispiele daneben an" : " oder wähle ein anderes Modell"}: Dann siehst du, welche Zahlen sich unterscheiden und wie sehr.`,
    next: (which) => (which === 0 ? "Vorhersagen für diesen Text" : "Vorhersagen für den anderen Text"),
    where: "Größte Unterschiede",
    nowhere: "Hier gibt es keine Unterschiede.",
    group: "Stellen filtern",
    groups: {
      all: "alle Stellen",
      attention: "Aufmerksamkeitsgewichte",
      heads: "Ausgaben der Köpfe",
      stream: "Residualstrom",
      feedforward: "Feed-Forward",
    },
    modes: { difference: "Unterschied", one: "Dieser Text", other: "Anderer Text" },
    modelModes: { difference: "Unterschied", one: "Dieses Modell", other: "Anderes Modell" },
    number:
      "Jede Zahl ist $\\lVert x' - x \\rVert / \\lVert x \\rVert$ mit dem Wert $x$ für diesen Text und dieses Modell und dem anderen Wert $x'$: 0 bedeutet keinen Unterschied, 1 einen Unterschied, der so groß ist wie $x$ selbst. Der Unterschied ist $x' - x$.",
    largest: (shown, all) =>
      `Angezeigt werden die ${shown} größten von ${all}; die übrigen findest du mit dem Filter.`,
    shapes:
      "Die beiden Modelle haben verschiedene Formen. Ihre Aktivierungen lassen sich nicht vergleichen, ihre Vorhersagen schon.",
  },
  change: {
    description:
      "Bearbeite eine Aktivierung und sieh sofort, wie sich das nächste Wort ändert. Wähle in der Zeile darüber einen Kopf oder ein Token, oder öffne ein Neuron des Feed-Forward-Netzes: Es erscheint dann unter „Ausgewählt“.",
    what: "Ausgewählt",
    head: (block, head) => `Kopf ${block}.${head}`,
    stream: (token, block) => `Residualstrom von „${token}“ vor Block ${block}`,
    neuron: (neuron, block) => `Neuron ${neuron} von Block ${block}`,
    weights: (block, head, token) => `Aufmerksamkeitsgewichte von „${token}“ in Kopf ${block}.${head}`,
    share: (token, weight) => `„${token}“ ${weight}`,
    silence: "Ausschalten",
    silenceSays: "Ausschalten: diese Zahlen auf null setzen.",
    scaleSays: "Diese Zahlen mit dem Faktor unten multiplizieren.",
    factor: "Faktor",
    take: "Aus anderem Text übernehmen",
    noOther: "Gib zuerst einen anderen Text ein.",
    hint: "ein Text, aus dem übernommen wird",
    other: "Anderer Text",
    weight: (block, head, from, to) => `Kopf ${block}.${head}: Aufmerksamkeit von „${from}“ auf „${to}“`,
    list: "Aktive Änderungen",
    aside: (count) =>
      count === 1
        ? "Eine Änderung passt nicht zu diesem Text oder Modell und wurde entfernt."
        : `${count} Änderungen passen nicht zu diesem Text oder Modell und wurden entfernt.`,
    none: "Keine. Das Modell ist unverändert.",
    done: {
      ablated: (what) => `${what}: ausgeschaltet`,
      scaled: (what, amount) => `${what}: × ${amount}`,
      patched: (what, text) => `${what}: aus „${text}“ übernommen`,
      set: (what, value) => `${what}: auf ${value} gesetzt`,
    },
    active: (count) => (count === 1 ? "1 Änderung aktiv" : `${count} Änderungen aktiv`),
    unused: "Für diese Ansicht gelten Änderungen nicht.",
    usedByNeighbors: "Hier gelten Änderungen nur für die nächsten Nachbarn.",
    edited: "bearbeitet",
    undo: "Letzte rückgängig machen",
    undoOne: (what) => `Rückgängig machen: ${what}`,
    clear: "Alle rückgängig machen",
    prediction: "Die wahrscheinlichsten Tokens vor und nach den Änderungen",
    before: "vorher",
    after: "nachher",
    rises: "nachher",
    falls: "nachher, wenn niedriger",
    difference: "Balkendiagramm",
  },
  effects: {
    title: "Wirkung auf das Ziel-Token",
    description:
      "Jeder Kopf oder jede Position wird der Reihe nach ausgeschaltet (auf null gesetzt) oder aus dem anderen Text übernommen. Die Zahl ist die Änderung der Log-Wahrscheinlichkeit des Ziel-Tokens: −0,69 halbiert die Wahrscheinlichkeit. Klicke auf eine Zelle, um sie auszuwählen.",
    over: { head: "Köpfe", position: "Positionen" },
    leftOut: "Änderung der Log-Wahrscheinlichkeit, wenn ein Token fehlt",
    leavingOut: (done, all) => `Jedes Token wird einmal weggelassen: ${done} von ${all}`,
    decides: (token) => `Vom letzten Token abgesehen, ist „${token}“ am wichtigsten.`,
    without: (token, target, before, after) =>
      `Die Wahrscheinlichkeit von „${target}“ ist ${before} nach dem ganzen Text und ${after} ohne „${token}“.`,
    ablated:
      "Die Karte zeigt, wo die Information ist: Der Vektor einer Position wird beim Eintritt in einen Block auf null gesetzt. Bei Block 0 fehlt damit auch, was alle Vektoren gemeinsam haben; deshalb scheint dort fast jede Position zu zählen. Welches Token entscheidet, zeigt das Weglassen (oben) oder das Übernehmen aus einem anderen Text.",
    progress: {
      head: (done, all) => `${done} von ${all} Köpfen`,
      position: (done, all) => `${done} von ${all} Positionen`,
    },
    withEdits: "Die aktiven Änderungen bleiben bestehen: Die Zahl bezieht sich auf die Vorhersage mit ihnen.",
    patched: "aus dem anderen Text übernehmen, statt auszuschalten",
    block: (i) => `Block ${i}`,
    summary: (what, before, after) => `${what}: ${before} → ${after}`,
  },
  why: {
    description:
      "Der Residualstrom ist die Summe von allem, was in ihn geschrieben wurde; deshalb ist auch der Logit eines Tokens eine Summe, ebenso die Differenz zweier Logits: warum dieses Token und nicht jenes. Verfolge die größten Beiträge zurück: durch einen Kopf zu dem Token, auf das er achtet, und zu dem, was dort vorher geschrieben wurde.",
    capped: "Dieses Modell begrenzt seine Logits; die Summe ist der Logit vor der Begrenzung.",
    ask: "Warum?",
    askSays: "Die Attribution erklärt diese Aufmerksamkeit.",
    way: "Attributionspfad",
    insteadOf: "statt",
    none: "kein anderes Token",
    noDifference: "Warum dieses Token und nicht ein anderes? Öffne dafür das Modell in Clearhead.",
    lowers: (against) => (against === null ? "senkt" : `für „${against}“`),
    raises: (target) => (target === null ? "erhöht" : `für „${target}“`),
    logit: (target, against) =>
      against === null ? `Logit von „${target}“` : `Logit von „${target}“ − Logit von „${against}“`,
    hop: (block, head, token) => `Kopf ${block}.${head} von „${token}“`,
    wrote: (target, token, against) =>
      against === null
        ? `Beiträge zum Logit von „${target}“, geschrieben in den Residualstrom von „${token}“:`
        : `Beiträge zur Differenz der Logits von „${target}“ und „${against}“, geschrieben in den Residualstrom von „${token}“:`,
    brought: (token, block) =>
      `Beiträge entlang dieses Pfads, vor Block ${block} in den Residualstrom von „${token}“ geschrieben:`,
    follow: (token) => `Zurückverfolgen zu „${token}“`,
    feedforward: (block) => `Feed-Forward ${block}`,
    parts: {
      embedding: "Einbettung",
      position: "Position",
      edits: "deine Änderungen",
      bias: "Bias",
      shift: "Verschiebung der Norm",
      "head shift": "Verschiebung der Kopf-Norm",
      "final.shift": "Verschiebung der letzten Norm",
    },
    ofBlock: {
      "attention.bias": "Aufmerksamkeits-Bias",
      "feedforward.bias": "Feed-Forward-Bias",
      "attention_normed.shift": "Verschiebung der Aufmerksamkeits-Norm",
      "feedforward_normed.shift": "Verschiebung der Feed-Forward-Norm",
    },
    picture: "Beiträge zum Logit, nach Token und Block",
    legend: (target, against) =>
      `Kurven zeigen, was Köpfe von einem Token holen; Kreise zeigen, was Feed-Forward-Netze schreiben. Breite und Durchmesser zeigen den Betrag: Sie wachsen mit seiner Quadratwurzel. ${against === null ? "Violett erhöht den Logit, Ocker senkt ihn." : `Violett spricht für „${target}“, Ocker für „${against}“.`}`,
    looks: (block, head, from, to) => `Warum Kopf ${block}.${head} von „${from}“ aus auf „${to}“ achtet`,
    token: (token) => `„${token}“`,
    rest: (n) => (n === 1 ? "1 weiterer Beitrag" : `${n} weitere Beiträge zusammen`),
    apart: (key, share, other, otherShare) =>
      `„${key}“ bekommt ${share} der Aufmerksamkeit, „${other}“ als zweitstärkstes Token ${otherShare}. Ihre Scores unterscheiden sich um`,
    divided: (value) => `vor der Division durch $\\sqrt{d_k}$ und um ${value} danach.`,
    bySide: "Worüber summiert wird",
    atKeys: (key, other) => `geschrieben bei „${key}“ und „${other}“`,
    atQuery: (query) => `geschrieben bei „${query}“`,
    byKeys: (query, key, other) =>
      `Die Differenz ist eine Summe über die Komponenten vor diesem Block: was jede bei „${key}“ geschrieben hat, minus dem, was sie bei „${other}“ geschrieben hat, auf Schlüssel projiziert und mit der Anfrage von „${query}“ multipliziert. Was bei beiden gleich ist, hebt sich auf: Auch die Softmax ignoriert es.`,
    byQuery: (query, key, other) =>
      `Dieselbe Differenz als Summe über das, was jede Komponente bei „${query}“ geschrieben hat, auf Anfragen projiziert und mit dem Schlüssel von „${key}“ minus dem von „${other}“ multipliziert.`,
    strongestPairs: "Stärkste Paare aus beiden Seiten:",
    alone: (token) =>
      `„${token}“ kann auf kein anderes Token achten; das Gewicht ist daher 100\u202f%, unabhängig vom Score.`,
  },
  words: {
    description:
      "Ein Token hat einen einzigen statischen Vektor, unabhängig vom Kontext. Von Block zu Block nimmt es mehr von seinem Kontext auf: Dasselbe Wort bekommt in jedem Satz einen anderen Vektor, und seine Bedeutungen trennen sich.",
    word: "Wort",
    sentences: (most) => `Sätze, einer je Zeile (höchstens ${most})`,
    noWord: (model) =>
      `Kein einzelnes Token von ${model} ist ein Wort, deshalb gibt es kein Beispiel. Du kannst ein Wort eingeben: Gezeigt werden die Vektoren seines letzten Tokens.`,
    many: (count, most) => `Du hast ${count} Sätze eingegeben. Erlaubt sind höchstens ${most}.`,
    split: (word, pieces) =>
      `Für dieses Modell ist „${word}“ nicht immer ein einziges Token. Gezeigt werden die Vektoren des letzten Tokens: ${pieces.map((piece) => `„${piece}“`).join(", ")}.`,
    without: (word, sentences) =>
      `In ${sentences.map((each) => `„${each}“`).join(", ")} kommt „${word}“ nicht vor.`,
    stage: "Stufe",
    static: "statisch",
    entering: (block) => `Eingang von Block ${block}`,
    end: "Ende",
    alike: "Die statischen Vektoren sind identisch.",
    shares: (share) => `Die ersten beiden Hauptkomponenten erklären ${share} der Varianz.`,
    map: (stage) => `Karte der Vektoren des Wortes (${stage})`,
    curves:
      "Kosinus-Ähnlichkeit zwischen dem Vektor in Satz 0 und denen in den anderen Sätzen, vom statischen Vektor bis zum Ende",
    cosine: "Kosinus-Ähnlichkeit mit dem Vektor in Satz 0",
    neighbors: (token) => `Nächste Nachbarn des ausgewählten Tokens „${token}“`,
    nearSays:
      "Auf jeder Stufe sind das die Tokens, deren eigene Vektoren dem Vektor des ausgewählten Tokens in der Richtung am nächsten kommen (Kosinus-Ähnlichkeit).",
    alongSays:
      "Wähle oben in der Zeile ein anderes Token, oder gib unten zwei Wörter ein, um die Richtung vom ersten zum zweiten zu addieren.",
    cosineColumn: "Kosinus",
    token: "Token",
    from: "Von",
    to: "Nach",
  },
  tiny: {
    description:
      "Dieser Aufmerksamkeitskopf ist klein genug, um ihn von Hand zu berechnen: 0 ist [1; 0] und 1 ist [0; 1]. Ändere die Folge oder eine Zahl in den vier Matrizen, und jeder Schritt wird neu berechnet.",
    sequence: "Folge",
    divided: "durch $\\sqrt{d_k}$ dividieren",
    causal: "Zukunft maskieren",
    base3: "3 statt $e$",
    base3Says: "Die Softmax rechnet mit Potenzen von 3, die sich leichter im Kopf berechnen lassen.",
    examples: {
      boosted: "Verstärkte Schlüssel",
      plain: "Einfache Schlüssel",
      own: "Jede Ziffer sucht sich selbst",
    },
    examplesSay: {
      boosted:
        "Lädt die Folge 0010, Anfragen, die alle nach einer 1 suchen, und Schlüssel der Länge 10: Fast das ganze Gewicht fällt auf die 1.",
      plain: "Lädt die Folge 0010, Anfragen, die alle nach einer 1 suchen, und Schlüssel der Länge 1.",
      own: "Lädt die Folge 01, Anfragen, mit denen jedes Token seine eigene Ziffer sucht, und Schlüssel der Länge 10.",
    },
    matrices: {
      query: "Anfragematrix",
      key: "Schlüsselmatrix",
      value: "Wertmatrix",
      output: "Ausgabematrix",
    },
    entry: (matrix, row, column) => `${matrix}, Zeile ${row}, Spalte ${column}`,
    empty: (most) => `Gib 1 bis ${most} Ziffern ein, jede 0 oder 1.`,
    left: "Nur die Ziffern 0 und 1 zählen; alles andere wird ignoriert.",
    blank: "Das ist keine Zahl. Bis du eine eingibst, gilt die vorherige.",
    steps: {
      query: "Anfrage",
      key: "Schlüssel",
      value: "Wert",
      scores: "vergleichen",
      scaled: "dividieren",
      masked: "maskieren",
      weights: "Softmax",
      mixed: "gewichten und summieren",
      output: "schreiben",
    },
  },
  lens: {
    description:
      "Die Logit-Linse liest den Residualstrom nach jedem Block so aus, als wäre dieser der letzte. Sie zeigt für jede Position, was das Modell vorhersagen würde, wenn es dort aufhörte. Lies sie von oben nach unten: Block 0 ist die erste Zeile, und die letzte Zeile ist die tatsächliche Vorhersage.",
    only: "Wahrscheinlichkeit des Ziel-Tokens anzeigen",
    summary: (token, share) => `„${token}“ ${share}`,
    here: (block, token) => `Nach Block ${block}, bei „${token}“:`,
  },
};
