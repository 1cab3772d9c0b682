/** Vorlesung 002 auf Deutsch: die Texte der Stationen und die Beschriftungen der Abbildungen. */

import type { FIGURES_002 as EnglishFigures } from "./lecture002.en";
import type { StopText } from "./lectures.en";

export const STOPS_002: Record<string, StopText> = {
  "002.1": {
    title: "Zwei Arten von Fragen",
    idea: "Was bestimmt die Bedeutung eines Wortes? Das ist eine konzeptuelle Frage, und eine Antwort darauf ist die distributionelle Hypothese: Wörter in ähnlicher Umgebung haben ähnliche Bedeutungen, wie „cat“ und „dog“ in „the … gets fed“. Warum 300 Neuronen, nicht 200, nicht 500? Das ist eine technische Frage, und die beantwortet nur eine Messung.",
    notice:
      "Auf den Trainingssätzen ist breiter immer mindestens so gut. Auf neuen Sätzen fällt der Verlust bis zur Breite 4 steil, bis 8 noch etwas und bleibt dann etwa gleich oder steigt; mit 20 Sätzen steigt er ab 4. Auch mit dem Startwert kann sich die beste Breite ändern.",
    question:
      "„Make sure that the cat gets fed“, „make sure that the dog gets fed“: Wie viele Wörter sind höchstens zwei Stellen von „cat“ und auch von „dog“ entfernt?",
    hint: "Schreibe die zwei Wörter vor und die zwei nach „cat“ auf, dann die bei „dog“.",
    solution:
      "„that“, „the“, „gets“ und „fed“: {answer}. An ihnen könnte niemand „cat“ und „dog“ unterscheiden.",
    notes:
      "Lass die Gruppe raten, bevor du trainierst. Den Text erzeugt eine kleine Grammatik; jedes Modell macht 100 Schritte, jeden mit allen Paaren; 200 Sätze werden zurückgehalten, für jede Breite dieselben. Ändere dann den Startwert: Die Unterschiede zwischen 8, 16 und 32 sind so klein wie die zwischen Startwerten, ein einziger Lauf entscheidet also nicht zwischen ihnen. Der Artikel zu word2vec vergleicht Breiten ebenso, mit weit mehr Text.",
  },
  "002.2": {
    title: "Gelernte Merkmale: Skip-Gram",
    idea: "Merkmale von Wörtern haben früher Menschen entworfen: Ist es ein Tier, lebt es? Skip-Gram lernt sie. Jedes Wort bildet mit jedem Nachbarn in einem Fenster ein Trainingspaar, die Vektoren lernen, den Nachbarn vorherzusagen, und Wörter mit ähnlichen Nachbarn bekommen ähnliche Vektoren.",
    notice:
      "Zieh die Schritte von 0 nach oben: Die Vektoren beginnen zufällig, und das Training bringt „cat“ und „dog“ zusammen, obwohl sie nie im selben Satz stehen. Ersetze „dog“ in einem Satz durch „bus“ und sieh, was sich ändert.",
    question:
      "Wie viele Trainingspaare ergibt „The quick brown fox jumps over the lazy dog“ mit einem Fenster von 3?",
    hint: "Die meisten Wörter haben sechs Nachbarn. Die ersten drei und die letzten drei haben weniger.",
    solution:
      "Neun Wörter mit je sechs Nachbarn wären 54. An jedem Ende fehlen 3, 2 und 1 Nachbarn: $54 - 2 \\cdot 6 =$ {answer}.",
    notes:
      "Die erste Zeile ist (the, quick) und (the, brown) wie in der Vorlesung. Die Vektoren haben 8 Zahlen und werden mit einer Softmax über alle Wörter trainiert; word2vec ersetzt diese Summe durch einige negative Beispiele, weil sein Vokabular groß ist. Niemand hat dem Modell gesagt, was ein Tier ist: Die ähnliche Umgebung genügt. Echte statische Vektoren stehen unter „Wortvektoren“.",
  },
  "002.3": {
    title: "Die Hauptaufgabe eines Sprachmodells",
    idea: "Welches Wort folgt am wahrscheinlichsten auf eine Folge von Wörtern? Jedes frühere Wort kann eine Rolle spielen, aber nicht alle im selben Maß, und kein Wort wird von späteren beeinflusst: Sprache hat eine zeitliche Dimension. Hier stimmt jedes frühere Wort $w$ für sich ab, gleich in welcher Reihenfolge: Ein Kandidat am Ende von $n$ Zeilen zählt $n \\prod_w (n_w + 1)/(n + 2)$, wenn $n_w$ davon $w$ enthalten. Die Zahl unter $w$ sagt, um wie viel die Wahrscheinlichkeit ohne $w$ fiele.",
    notice:
      "Klicke Wörter aus Damians Satz weg: Ohne eines davon wird „her“ zu „him“. Jedes „his“ zieht in die andere Richtung. Lies nur einen Teil: Die Vorhersage ändert sich mit dem entscheidenden Wort.",
    question: "Welches dieser Wörter in Damians Satz spricht am direktesten dafür, dass „her“ folgt?",
    options: ["secret", "girl", "his", "belongings"],
    hint: "Welches von ihnen sagt, wer erbt?",
    solution: "Es ist „girl“, das Wort, das sagt, wer erbt. Es steht ein Dutzend Wörter vor der Lücke.",
    notes:
      "Das Modell ist Naive Bayes: Jedes Wort stimmt für sich ab, gleich an welcher Stelle. Das genügt, um zu sehen, dass Wörter verschieden viel wiegen; solche Gewichte berechnet Aufmerksamkeit. Es zeigt auch, was fehlt: Die Stimmen stehen fest und wissen nichts voneinander. Öffne den Satz unter „Attribution“, um einem trainierten Transformer dieselbe Frage zu stellen.",
  },
  "002.4": {
    title: "Die Aufgabe von ChatGPT",
    idea: "Sage das nächste Wort vorher, hänge es an und mach weiter: So arbeitet GPT, ein „generative pre-trained transformer“, also ein mehrschichtiges Netz, das auf paralleler Multi-Head-Aufmerksamkeit beruht. Das Modell sieht nur die letzten Wörter, so viele, wie sein Kontext lang ist: bei 8 also $w_1 \\dots w_8 \\to w_9$, dann $w_2 \\dots w_9 \\to w_{10}$. Das Fenster gleitet, und vergangene Wörter sagen künftige vorher.",
    notice:
      "Mit einem Kontext von 8 folgt der erzeugte Text der Geschichte. Verkürze ihn auf 2 und erzeuge 20 Wörter: Nach „lazy dog“ ist nicht mehr zu erkennen, an welcher Stelle der Geschichte es weitergeht, und der Text dreht sich im Kreis.",
    question:
      "Der Kontext ist 8 Wörter lang. Welche Nummer hat das erste Wort, zu dessen Vorhersage $w_5$ nichts mehr beiträgt?",
    hint: "$w_5 \\dots w_{12}$ sagen $w_{13}$ vorher. Womit beginnt das nächste Fenster?",
    solution:
      "$w_5$ liegt zum letzten Mal im Fenster bei $w_5 \\dots w_{12} \\to w_{13}$. Das nächste Fenster beginnt mit $w_6$ und sagt $w_{{answer}}$ vorher.",
    notes:
      "Das nächste Wort ist hier das häufigste nach dem längsten Teil des Fensters, der in der Geschichte vorkommt. Ein Transformer braucht keine genaue Übereinstimmung, aber sein Fenster arbeitet ebenso: Was es verlassen hat, hat keinen direkten Einfluss mehr. Im Experiment erzeugt ein trainiertes Modell Text durch ein solches Fenster.",
  },
  "002.5": {
    title: "Wörter als Merkmalsvektoren",
    idea: "Ein Wort ist eine Zeile aus 32 Zahlen, seinen Merkmalen. Acht Wörter sind eine Matrix $X$ mit 8 Zeilen und 32 Spalten. Auch das Nachschlagen in der Einbettungstabelle ist ein Produkt: One-Hot-Vektoren mal Tabelle.",
    notice:
      "„The“ an Stelle 1 und „the“ an Stelle 7 haben in $X$ dieselbe Zeile: Die Tabelle kennt das Wort, aber weder seinen Platz noch seine Nachbarn. Gib andere Wörter ein; der Kopf der nächsten drei Stationen verwendet sie.",
    question: "Wie viele Zeilen braucht die Tabelle für „The quick brown fox jumps over the lazy“?",
    hint: "Die Tabelle hat für jedes verschiedene Wort eine Zeile.",
    solution: "{answer}: Es sind acht Wörter, und „the“ kommt zweimal vor.",
    notes:
      "Die 32 Zahlen sind hier zufällig, für dasselbe Wort immer dieselben, damit die Formen die der Vorlesung sind und sich jede Zahl nachrechnen lässt. In einem trainierten Modell sind sie gelernt. Die Stationen 5 bis 8 sind ein einziges Beispiel: Was du an einer änderst, bleibt an den anderen geändert, bis du es zurücksetzt.",
  },
  "002.6": {
    title: "Anfragen, Schlüssel, alle Skalarprodukte",
    idea: "Jedes Wort bekommt eine Anfrage, die sagt, was es sucht, und einen Schlüssel, der sagt, was es bietet: $Q = X W^Q$ und $K = X W^K$, beide $8 \\times 32$. Ein einziges Produkt, $S = Q K^\\top$, vergleicht dann jede Anfrage mit jedem Schlüssel: $S_{ij} = q_i \\cdot k_j$.",
    notice:
      "Eine Zelle nimmt eine Zeile von $Q$ und eine Spalte von $K^\\top$, multipliziert Zahl für Zahl und summiert. 64 Skalarprodukte mit je 32 Summanden sind ein einziges Matrixprodukt. $S$ ist nicht symmetrisch: $q_2 \\cdot k_1$ ist nicht $q_1 \\cdot k_2$. (Vorlesung 001 schreibt $q_i - K_j$, meint aber das Skalarprodukt; die erste Zeile von $\\text{Key}^\\top$ in 002 müsste $k_1^{t1}, k_1^{t2}, \\dots, k_1^{t8}$ lauten.)",
    question: "Ohne auf die Zahlen zu sehen: Welcher Score muss gleich $S_{31}$ sein?",
    options: ["$S_{13}$", "$S_{37}$", "$S_{73}$"],
    hint: "Wort 1 und Wort 7 sind dasselbe Wort, haben also denselben Schlüssel.",
    solution: "$S_{31} = q_3 \\cdot k_1$ und $S_{37} = q_3 \\cdot k_7$, und $k_1 = k_7$: Beide sind „the“.",
    notes:
      "In $\\text{Key}^\\top$ ist der untere Index das Merkmal und bleibt in einer Zeile gleich; in der ersten Zeile der Vorlesung läuft er mit den Wörtern mit. $W^Q$ und $W^K$ sind hier zufällig; im Training würden sie gelernt.",
  },
  "002.7": {
    title: "Maske und Softmax",
    idea: "Spätere Wörter dürfen ein Wort nicht beeinflussen, deshalb wird jeder Score über der Diagonale zu $-\\infty$. Die Softmax macht dann aus jeder Zeile Gewichte: $e^{-\\infty} = 0$, die Zukunft bekommt also keines, und jede Zeile summiert sich zu 1.",
    notice:
      "Das erste Wort kann nur auf sich selbst achten, deshalb ist $P_{11} = 1$, gleich wie groß die Scores sind. Ohne Maske verteilt sich jede Zeile auf alle acht Wörter. Dividierst du durch $\\sqrt{d_k}$, werden die Gewichte gleichmäßiger.",
    question:
      "In Zeile 2 unterscheiden sich die zwei sichtbaren Scores um $\\ln 3$, der Rest ist maskiert. Wie groß ist das größere Gewicht?",
    hint: "Nur der Unterschied zählt: Die Potenzen verhalten sich wie $e^{\\ln 3} = 3$ zu 1.",
    solution: "3 Teile zu 1: $3 / (3 + 1) =$ {answer}.",
    notes:
      "Warum $-\\infty$ und nicht 0? Ein Score von 0 bekäme noch ein Gewicht, denn $e^0 = 1$. Die Vorlesung dividiert nicht durch $\\sqrt{d_k}$; die Merkmale sind hier so klein, dass die Softmax auch ohne Division nicht gesättigt ist. Frage, welche Zeile gleich bleibt, wenn die Maske wegfällt, und warum.",
  },
  "002.8": {
    title: "Werte und die gewichtete Summe",
    idea: "Die dritte Projektion ist das, was ein Wort weitergibt: $V = X W^V$. Die Ausgabe des Kopfes ist noch ein Produkt, $P V$: Seine Zeile $a_i$ ist die gewichtete Summe der Werte aller Wörter bis $i$, zum Beispiel $a_2 = P_{21} v_1 + P_{22} v_2$.",
    notice:
      "In der Vorlesung hat $V$ die Form $8 \\times 8$, während $Q$ und $K$ die Form $8 \\times 32$ haben. Ändere $d_v$: $P$ ändert sich nicht, und die Ausgabe ist so breit wie die Werte. Nur Anfragen und Schlüssel müssen gleich breit sein.",
    question:
      "Sei $P_{21} = 1/4$, $P_{22} = 3/4$, $v_1 = [4; 0]$ und $v_2 = [8; -4]$. Wie lautet die erste Zahl von $a_2$, der Zeile 2 der Ausgabe?",
    hint: "Gewichte die ersten Zahlen der beiden Werte: $1/4 \\cdot 4 + 3/4 \\cdot 8$.",
    solution: "$1/4 \\cdot 4 + 3/4 \\cdot 8 = 1 + 6 =$ {answer}. Die zweite ist $-3$.",
    notes:
      "Beginne mit Zeile 1: $a_1 = v_1$, denn das erste Wort sieht nur sich selbst. Dann Zeile 2 wie in der Vorlesung und Zeile 8, eine Mischung aller Werte. Die Nullen über der Diagonale von $P$ halten die Zukunft aus der Summe heraus. Ein vollständiges Modell multipliziert danach mit $W^O$ und addiert das Ergebnis zum Residualstrom.",
  },
  "002.9": {
    title: "Schleifen und Matrizen",
    idea: "Derselbe Kopf lässt sich in Schleifen schreiben: für jedes Wort, für jedes Wort bis zu ihm projizieren, vergleichen, gewichten, summieren. Oder als fünf Matrixprodukte: drei Projektionen, $Q K^\\top$ und $P V$. Die Zahlen sind gleich, die Zeiten nicht.",
    notice:
      "Naiv geschrieben, berechnen die Schleifen dieselben Schlüssel und Werte für jedes Wort, das zurückblickt, noch einmal. Behalten sie beides, schließt sich der Abstand in diesem Browser fast: Hier wird eine Zahl nach der anderen berechnet. Auf einer GPU, die Tausende parallel berechnet, öffnet er sich wieder.",
    question:
      "Wie viele Multiplikationen braucht $Q K^\\top$ bei 8 Wörtern, deren Anfragen und Schlüssel 32 Merkmale haben?",
    hint: "Jede Zelle einer $8 \\times 8$-Matrix ist eine Summe von 32 Produkten.",
    solution: "$8 \\cdot 8 \\cdot 32 =$ {answer}.",
    notes:
      "Gemessen wird auf deinem Rechner, wenn du den Knopf drückst, als Mittel vieler Läufe; die Zeiten schwanken. Nenne die Gründe ehrlich: Ein Teil des Gewinns ist gesparte Arbeit, ein Teil sequenzielles Lesen aus dem Speicher; den Rest zeigt ein Browser nicht, nämlich dass eine GPU Tausende Zellen eines Produkts gleichzeitig berechnet. Das Experiment misst es in PyTorch.",
  },
  "002.10": {
    title: "Ein Kopf ist eine Beziehung",
    idea: "Was stellt ein Kopf dar? Eine Beziehung zwischen Wörtern: wer wen sucht. Dieser Kopf ist von Hand entworfen. Die Merkmale eines Wortes sind seine Wortart, $W^K$ ist zehnmal die Einheitsmatrix, und jede Zeile von $W^Q$ sagt, was eine Wortart sucht.",
    notice:
      "Wähle „Nomen → Adjektiv“: „fox“ legt sein Gewicht auf „quick“ und „brown“. Ein anderes $W^Q$ ist eine andere Beziehung zwischen denselben Wörtern. Wörter ohne eigene Anfrage verteilen ihr Gewicht gleichmäßig.",
    question:
      "In einem Kopf hat ein Nomen mit jedem Adjektiv den Score 10 und mit jedem anderen Wort 0. Der Kopf liest „a tired old gray duck“. Welches Gewicht legt „duck“ auf „old“?",
    hint: "Drei Adjektive bekommen denselben Score, 10, und die beiden anderen Wörter 0.",
    solution:
      "$e^{10} / (3 e^{10} + 2) \\approx$ {answer}: Die drei Adjektive teilen sich das Gewicht, und für „a“ und „duck“ bleibt fast nichts.",
    notes:
      "Ein trainiertes Modell hat viele Köpfe, und niemand entwirft sie; manche stellen eine Beziehung dar, die sich benennen lässt, etwa zum vorigen Wort. Öffne Alle Köpfe, um sie zu suchen. Frage, warum „lazy“ sein Nomen nicht findet: „dog“ käme erst später, und das verbietet die Maske.",
  },
  "002.11": {
    title: "Der Verlust eines Tokens",
    idea: "Über die Vorlesung hinaus: warum Training funktioniert. Nach „The quick brown fox jumps over the lazy“ hat das Modell für jedes Wort einen Logit $z$. Die Softmax macht daraus Wahrscheinlichkeiten $p$, und der Verlust ist die Kreuzentropie, $-\\ln p$ des Wortes, das im Text als Nächstes kommt. Sein Gradient ist $p - y$ mit $y = 1$ für dieses Wort und 0 für die übrigen; der Gradientenabstieg zieht ihn ab, multipliziert mit der Lernrate $\\eta$.",
    notice:
      "Nur das richtige Wort hat einen negativen Gradienten, also steigt nur sein Logit; je mehr Wahrscheinlichkeit ein falsches Wort hat, desto weiter fällt dessen Logit. Drücke immer wieder „Schritt ausführen“: Je besser die Vorhersage, desto kleiner der Schritt.",
    question:
      "Ein Modell gibt dem richtigen nächsten Wort die Wahrscheinlichkeit $1/4$. Wie groß ist der Gradient des Verlusts nach dem Logit dieses Wortes?",
    hint: "Der Gradient ist $p - y$, und für das richtige Wort ist $y = 1$.",
    solution: "$p - y = 1/4 - 1 =$ {answer}: Ein Schritt gegen den Gradienten hebt diesen Logit.",
    notes:
      "Rechne die erste Zeile von Hand: $e^0 / (3 e^0 + e^1) = 0{,}175$, die Softmax aus Vorlesung 001, und $-\\ln 0{,}175 = 1{,}74$. Frage, wohin der Gradient von hier aus geht: mit der Kettenregel zurück durch den Stapel zu jedem Gewicht. Ein Modell, das nur mit einem Text trainiert würde, gäbe „dog“ bald die ganze Wahrscheinlichkeit, auch nach anderen Wörtern; ein Batch aus vielen Texten verhindert das.",
  },
};

export const FIGURES_002: typeof EnglishFigures = {
  sentences: "Trainingssätze",
  vocabulary: "Vokabular aus vier Wörtern",
  nextIs: "Im Text folgt",
  logit: "Logit",
  logitOf: (word) => `Logit von ${word}`,
  target: "Ziel",
  gradient: "Gradient",
  afterStep: "nach dem Schritt",
  rate: "Lernrate η",
  takeStep: "Schritt ausführen",
  loss: "Verlust, $-\\ln p$",
  lossAfter: "Verlust nach dem Schritt",
  lossLater: (steps) => `Verlust nach ${steps} Schritten`,
  seed: "Startwert",
  trainAll: (count) => `${count} Modelle trainieren`,
  heldOut: "Verlust auf neuen Sätzen",
  training: "Verlust auf den Trainingssätzen",
  width: "Breite (Neuronen)",
  losses: "Verlust nach Breite",
  best: (widths) =>
    widths.length === 1
      ? `Auf neuen Sätzen ist der Verlust bei Breite ${widths[0]} am kleinsten.`
      : `Auf neuen Sätzen ist der Verlust bei den Breiten ${widths.slice(0, -1).join(", ")} und ${widths.at(-1)} am kleinsten: in den gezeigten Stellen gleich.`,
  untrained: "Welche Breite wird auf neuen Sätzen die beste sein? Rate und trainiere dann.",
  window: "Fenster",
  pairs: "Trainingspaare",
  center: "Zentrum",
  neighbors: "Nachbarn: je ein Paar",
  trainOn: "Sätze für das Training",
  steps: "Schritte",
  nearestTo: "Am nächsten bei",
  catAndDog: "Kosinus: cat und dog",
  endings: "Zeilen; ihr letztes Wort wird vorhergesagt",
  prompt: "Wie geht es weiter?",
  read: "Wörter",
  leaveOut: "Wörter zum Weglassen",
  nextWord: "nächstes Wort",
  story: "Geschichte als Vorlage; die ersten acht Wörter sind gegeben",
  contextLength: "Kontextlänge",
  generated: "Erzeugte Wörter",
  generatedText: "Erzeugter Text",
  windows: "Fenster",
  window8: "das Modell sieht",
  follows: "folgt",
  matched: "Graue Wörter halfen nicht: In der Geschichte stehen nur die schwarzen so hintereinander.",
  eight: (most) => `Gib 1 bis ${most} Wörter ein.`,
  word: "Wort",
  features: "Merkmale des Wortes",
  oneHot: "One-Hot",
  table: "Tabelle",
  clickCell: "Klicke auf eine Zelle von S oder bewege dich mit den Pfeiltasten.",
  keysTransposed: "K transponiert",
  queries: "Q",
  query: "Anfrage",
  key: "Schlüssel",
  products: "Produkte",
  softmaxOf: "Softmax der Zeile",
  rowOf: (row, word) => `Zeile ${row}: ${word}`,
  d_v: "Breite $d_v$ der Werte",
  output: "Ausgabe",
  weighted: "Gewichtete Werte",
  words: "Wörter",
  kept: "Schleifen behalten Schlüssel und Werte",
  products5: "Fünf Produkte",
  product: "Produkt",
  shapes: "Formen",
  multiplications: "Multiplikationen",
  byMatrices: "Matrizen",
  byLoops: "Schleifen",
  difference: "Größter Unterschied zwischen beiden Ergebnissen",
  measure: "Zeit messen",
  ratio: "Schleifen / Matrizen",
  maskedToo: "Die Matrizen berechnen auch die maskierte Hälfte.",
  fasterStill: "Die Matrizen berechnen auch die maskierte Hälfte und sind trotzdem schneller.",
  relationship: "Beziehung",
  relationships: {
    modifier: "Nomen → Adjektiv",
    subject: "Verb → Nomen",
    governor: "Präposition → Verb",
  },
  asksFor: "Zeile sucht Spalte",
  queryMatrix: "Anfragematrix",
  kinds: {
    determiner: "Art.",
    adjective: "Adj.",
    noun: "Nomen",
    verb: "Verb",
    preposition: "Präp.",
  },
  looksFor: (kind, sought) => `${kind} sucht ${sought}`,
  finds: (word, found) => `${word} achtet auf ${found}`,
  noQuery: "Keine Wortart sucht etwas.",
  others:
    "Alle anderen Wörter haben die Anfrage 0 und achten gleichmäßig auf sich selbst und alle Wörter davor.",
};
