/** Die Experimente der Vorlesungen auf Deutsch; den englischen Text liefert der Server. */

import type { Messages } from "./en";

export const LABS: Messages["labs"]["translated"] = {
  attention: {
    title: "Aufmerksamkeit, Zahl für Zahl",
    description:
      "Eine Folge von Ziffern: 0 ist der Vektor [1, 0], 1 der Vektor [0, 1]. Eine Anfrage wird mit jedem Schlüssel verglichen, die Softmax macht aus den Scores Gewichte, und die Gewichte mischen die Werte. Je mehr Nullen es sind, desto weniger Gewicht bleibt für die 1. Setze die Verstärkung auf 10, sodass die Schlüssel zehnmal so lang sind: Dann fällt fast das ganze Gewicht auf die 1. Eine Matrix W zwischen Schlüssel und Anfrage, k W q, legt fest, welche Schlüssel zur Anfrage passen; ob sie auf den Schlüssel oder auf die Anfrage angewandt wird, der Score ist derselbe.",
    question:
      "Bei welcher Verstärkung bekommt die 1 so viel Gewicht wie alle Nullen zusammen? Hängt das von der Anzahl der Nullen ab?",
    settings: {
      sequence: "die Ziffern, jede 0 oder 1",
      query: "die gesuchte Ziffer",
      boost: "Faktor, mit dem die Schlüssel multipliziert werden",
      base: "Basis der Potenzen in der Softmax: e wie üblich oder 3, was von Hand leichter geht",
      matrix: "W in den Scores k W q; ein Schrägstrich trennt die Zeilen",
    },
  },
  scale: {
    title: "Warum durch √d_k geteilt wird",
    description:
      "Anfragen und Schlüssel aus Zufallszahlen: Je länger die Vektoren sind, desto stärker streuen ihre Skalarprodukte, und zwar wie √d. Ohne Division legt die Softmax dann fast das ganze Gewicht auf ein einziges Token, und ihr Gradient verschwindet nahezu; teilt man durch √d_k, behalten die Gewichte ihre Verteilung.",
    question: "Ab welchem d ist das größte Gewicht größer als ein Halb? Was bedeutet das für das Lernen?",
    settings: {
      keys: "Anzahl der Schlüssel, mit denen eine Anfrage verglichen wird",
      widest: "größte Dimension d der Vektoren",
      samples: "zufällige Anfragen für jedes d",
      seed: "Startwert der Zufallszahlen",
    },
  },

  "any-one": {
    title: "War eine der Ziffern eine 1?",
    description:
      "Auf eine 1 folgen hundert Nullen: War eine 1 dabei? Ein rekurrentes Netz muss diese Information von Zustand zu Zustand weitertragen, die Aufmerksamkeit greift direkt auf die 1 zu, und ein N-Gramm-Modell hat sie vergessen. Mit kurzen Folgen trainiert, trägt ein rekurrentes Netz die Information in manchen Durchgängen durch 200 Ziffern und verliert sie in anderen. Nur mit 101 Ziffern trainiert, bleibt es nahe am Zufallsniveau, während die Aufmerksamkeit die Aufgabe lernt: Ihr Vorteil ist, dass sich der lange Fall lernen lässt. Diese Aufmerksamkeit verwendet keine Positionen, damit ungesehene Längen nichts Neues für sie sind. Die einzige Folge ohne 1 zählt für die eine Hälfte der Genauigkeit, alle anderen zusammen für die andere; ein Netz, das nichts gelernt hat, liegt also bei etwa einem Halb. Das Band um jede Linie zeigt die einzelnen Durchgänge.",
    question:
      "In wie vielen Durchgängen liegt jedes mit kurzen Folgen trainierte Netz bei 200 Ziffern immer richtig? Warum kann das Training mit 101 Ziffern misslingen, selbst wenn ein Netz die Information so weit tragen könnte?",
    settings: {
      trained: "mit 5 bis 20 Ziffern, mit 101 Ziffern oder nacheinander mit beiden",
      seeds: "Anzahl der Durchgänge, jeweils mit anderen Anfangsgewichten",
      steps: "Trainingsschritte jedes Netzes",
      batch: "Folgen je Schritt",
      width: "Breite jedes Netzes",
    },
  },
  matrix: {
    title: "Ein Kopf, mit Schleifen und mit Matrizen",
    description:
      "Derselbe Kopf auf zwei Arten: Token für Token in Schleifen, wie man ihn erklärt, und als fünf Matrixprodukte, wie man ihn berechnet: drei Projektionen, Anfragen mal Schlüssel und Gewichte mal Werte. Die Zahlen stimmen bis auf Rundungsfehler überein, die Rechenzeiten nicht: Je mehr Tokens es sind, desto größer wird der Abstand.",
    question:
      "Wie viel länger brauchen die Schleifen bei doppelt so vielen Tokens, und wie viel länger die Matrizen? Warum?",
    settings: {
      longest: "größte Anzahl von Tokens",
      width: "Breite der Token-Vektoren und des Kopfes",
      repeats: "Wiederholungen; die schnellste zählt",
      seed: "Startwert der Zufallszahlen",
    },
  },
  position: {
    title: "Wozu Positionen da sind",
    description:
      "Ein Satz geht durch einen kleinen Transformer und dann noch einmal mit vertauschten Wörtern. Die Aufmerksamkeit allein kennt keine Reihenfolge: Achtet jedes Wort auf alle Wörter und gibt es keine Positionen, so bekommt jedes Wort an jeder Stelle denselben Vektor, und der Satz ist eine bloße Menge von Wörtern (Bag of Words). Die Gewichte sind zufällig, aber daran könnte kein Training etwas ändern. Mit Positionen ändern sich die Vektoren. In einem kausalen Modell ändern sie sich auch ohne Positionen, weil ein Wort nur auf sich selbst und die Wörter vor ihm achtet, und das sind nach dem Vertauschen andere.",
    question:
      "Schalte „kausal“ ein: Woran erkennt ein kausales Modell ohne Positionen, dass die Reihenfolge eine andere ist? An welcher Stelle behält ein Wort seinen Vektor, wie auch immer die anderen vertauscht werden?",
    settings: {
      sentence: "der Satz, dessen Wörter vertauscht werden",
      position: "Art der Positionen; verglichen wird mit einem Modell ohne Positionen",
      causal: "ob ein Wort nur sich selbst und die Wörter vor ihm sieht",
      seed: "Startwert für Gewichte und Vertauschung",
    },
  },
  window: {
    title: "Schreiben mit begrenztem Kontext",
    description:
      "Ein Modell mit einem Kontext von acht Tokens setzt einen Text fort: Aus w1 … w8 wird w9, aus w2 … w9 wird w10 und so weiter; w1 ist das erste Token, das es sieht. Was das Fenster verlassen hat, hat keinen Einfluss mehr: Die Fortsetzung ist dieselbe, was immer dort stand. Zur Probe wird die Reihenfolge der Tokens außerhalb des Fensters umgekehrt, und nichts ändert sich. Mit dem ganzen Text im Kontext schreibt dasselbe Modell vielleicht etwas anderes.",
    question: "Wie breit muss das Fenster sein, damit das Modell noch weiß, was Ella verloren hat?",
    settings: {
      prompt: "der Text, den das Modell fortsetzt",
      context: "Breite des Fensters: so viele Tokens sieht das Modell",
      tokens: "so viele Tokens erzeugt das Modell",
    },
  },
  blank: {
    title: "Welche Wörter die Lücke bestimmen",
    description:
      "Ein Satz bricht vor einer Lücke ab: Welches frühere Wort entscheidet, was das Modell dort vorhersagt? Die Antwort gibt die erste Spalte: Jedes Token wird einmal weggelassen, und das Modell füllt die Lücke ohne es; so zählt jeder Weg durch das Modell. Die Attribution in der zweiten Spalte beantwortet eine engere Frage: Sie zerlegt den Logit des Wortes exakt in das, was die Köpfe an der letzten Position von jedem Token holen, und übersieht, was ein Token vorher über andere Tokens bewirkt hat. Wo sich beide widersprechen, gilt die erste. Das letzte Token wirkt immer: Ohne es geht der Satz anders weiter.",
    question:
      "Welches Wort entscheidet, dass in der Lücke „her“ steht? Ersetze es im Satz so, dass „him“ wahrscheinlich wird. Setze dann „Wort“ auf „his“: Entscheidet dasselbe Wort? Warum ändert es wenig, manche Tokens wegzulassen, obwohl sie direkt beitragen?",
    settings: {
      sentence: "der Text vor der Lücke",
      word: "das Wort, dessen Vorhersage erklärt wird; nur sein erstes Token zählt",
      other: "ein anderes Wort, das unter den Kandidaten steht",
    },
  },
  senses: {
    title: "Ein Wort, zwei Bedeutungen",
    description:
      "„I'm scared of bats“; „I swing bats.“ Ein statischer Vektor ist in beiden Sätzen derselbe. In einem Transformer beginnt ein Wort mit seinem statischen Vektor und nimmt Block für Block Information aus den Wörtern vor ihm auf: Seine Vektoren hängen vom Kontext ab. Das gilt auch für die Zustände eines rekurrenten Netzes. Wie weit zwei Vektoren auseinanderliegen, hängt nicht nur von der Bedeutung ab; als Maßstab dienen deshalb Paare mit derselben Bedeutung. Zwei kleine Netze, ein LSTM und ein Transformer, lernen hier einige hundert Wörter aus Sätzen, in denen die Bedeutung bestimmt, was auf das Wort folgt; die gezeigten Sätze gehören nicht zum Training. Über „bats“ weiß ein solches Netz nur, welche Wörter zusammen mit diesem vorkommen. Beim Modell ist Stufe 0 die Einbettung; darauf folgen die Eingänge der Blöcke und das Ende.",
    question:
      "In welchem Block trennen sich die beiden Bedeutungen? Nimm eigene Sätze, in denen das entscheidende Wort erst nach dem mehrdeutigen kommt: Was geschieht in einem kausalen Modell?",
    settings: {
      word: "„bats“ oder „bank“, oder ein anderes Wort mit eigenen Sätzen",
      one: "Sätze mit der einen Bedeutung, durch / getrennt",
      other: "Sätze mit der anderen Bedeutung, durch / getrennt",
      seeds: "Anzahl der Durchgänge mit kleinen Netzen; 0 überspringt das Training",
      steps: "Trainingsschritte jedes kleinen Netzes",
    },
  },
  pronoun: {
    title: "Worauf bezieht sich „it“?",
    description:
      "Das Huhn ging nicht über die Straße, weil es zu müde war – oder weil sie zu breit war; im Englischen steht beide Male „it“. Ein bekanntes Bild zeigt, wie „it“ auf sein Bezugswort achtet. In einem kausalen Modell kann „it“ das Adjektiv nicht sehen: Seine Aufmerksamkeit ist in beiden Sätzen dieselbe. Erst das Adjektiv kann die beiden Fälle unterscheiden, und das tut es auch: Über alle Köpfe summiert achtet „tired“ mehr auf „chicken“ und „wide“ mehr auf „road“. Danach lernen zwei kleine Transformer aus Sätzen der eingebauten Geschichten, in denen das Bezugswort bekannt ist. Sie füllen Lücken, und auch ein Pronomen ist eine Lücke: Bei „it“ und noch einmal am Satzende sollen sie das Bezugswort nennen. Beim bidirektionalen Modell ergibt sich dieses Bild: Das Pronomen achtet auf sein Bezugswort, und setzt man den Vektor aus dem anderen Satz ein, kehrt sich die Antwort um. Beim kausalen Modell ist der Vektor von „it“ in beiden Sätzen derselbe, und das Modell kann nur raten; erst am Satzende kann es die Antwort kennen. Die beiden Nomen eines Testsatzes kamen im Training nie zusammen vor.",
    question:
      "Warum liegt das kausale Modell bei „it“ nie öfter als in der Hälfte der Fälle richtig? Schalte „Abfrage“ aus, sodass nur Lücken gefüllt werden: Achtet „it“ dann noch auf sein Bezugswort? Und was findet eine Sonde dort?",
    settings: {
      before: "der Anfang beider Sätze",
      first: "das Wort, das zum einen Nomen gehört",
      second: "das Wort, das zum anderen Nomen gehört",
      one: "das Nomen zum ersten Wort",
      other: "das Nomen zum zweiten Wort",
      pronoun: "das Pronomen, das für eines von beiden steht",
      seeds:
        "Anzahl der Durchgänge, in denen zwei Modelle aus Geschichten lernen; 0 überspringt das Training",
      steps: "Trainingsschritte jedes Modells",
      asked: "ob auch das Bezugswort abgefragt wird und nicht nur Lücken",
    },
  },
  neighbors: {
    title: "Katze und Hund: Wörter in ähnlicher Umgebung",
    description:
      "„I have to make sure that the cat gets fed“; „I forgot to make sure that the dog gets fed.“ Ein Skip-Gram-Modell lernt, für jedes Wort der eingebauten Geschichten die umgebenden Wörter vorherzusagen. Dadurch bekommen Wörter in ähnlicher Umgebung ähnliche Vektoren: Der Katze am nächsten sind die anderen Tiere, darunter der Hund.",
    question:
      "Welche Wörter sind „anna“ oder „red“ am nächsten? Stehen „cat“ bei einem Fenster von 10 immer noch die Wörter am nächsten, die es ersetzen könnten?",
    settings: {
      word: "das Wort, dessen Nachbarn gezeigt werden; es muss in den Geschichten vorkommen",
      count: "Anzahl der gezeigten Nachbarn",
      stories: "Anzahl der Geschichten zum Lernen",
      window: "größter Abstand zu einem umgebenden Wort",
      width: "Länge der Vektoren",
      epochs: "Anzahl der Epochen",
      seed: "Startwert für Anfangsvektoren und Stichproben",
    },
  },
  stream: {
    title: "Ein Kopf überträgt Information von Strom zu Strom",
    description:
      "Eine zufällige Folge von Tokens kommt zweimal hintereinander: Nur mit Aufmerksamkeit auf das erste Vorkommen lässt sich das zweite vorhersagen. Zwei Blöcke lernen das von Grund auf. Ein Kopf im ersten Block (der vier Positionen sieht) teilt jedem Token mit, welches Token vor ihm stand; Köpfe im zweiten Block finden damit das Token, das beim ersten Mal auf das aktuelle folgte, und kopieren es. Der Verlust sinkt, sobald es beide Arten von Köpfen gibt. Wird ein Kopf im zweiten Block ausgeschaltet, übernimmt ein anderer einen Teil seiner Arbeit; sind alle ausgeschaltet, ist die Fähigkeit verloren.",
    question:
      "Was entsteht zuerst: der Kopf, der auf das vorige Token achtet, oder der Induktionskopf? Wie verläuft der Verlust, bis es beide gibt?",
    settings: {
      heads: "Aufmerksamkeitsköpfe in jedem der beiden Blöcke",
      steps: "Trainingsschritte des Netzes",
      seed: "Startwert für Gewichte und Tokens",
    },
  },
};

/** Die Namen der Einstellungen: eines Experiments, und unter "" aller. */
export const SETTING_NAMES: Messages["labs"]["settingNames"] = {
  "": {
    sequence: "Folge",
    query: "Anfrage",
    boost: "Verstärkung",
    base: "Basis",
    matrix: "Matrix",
    keys: "Schlüssel",
    widest: "größtes d",
    samples: "Stichproben",
    seed: "Startwert",
    trained: "Training",
    seeds: "Durchgänge",
    steps: "Schritte",
    batch: "Batch",
    width: "Breite",
    longest: "größte Länge",
    repeats: "Wiederholungen",
    sentence: "Satz",
    position: "Positionen",
    causal: "kausal",
    prompt: "Text",
    context: "Kontext",
    tokens: "Tokens",
    word: "Wort",
    before: "Anfang",
    first: "erstes Wort",
    second: "zweites Wort",
    one: "ein Nomen",
    other: "anderes Nomen",
    pronoun: "Pronomen",
    asked: "Abfrage",
    count: "Anzahl",
    stories: "Geschichten",
    window: "Fenster",
    epochs: "Epochen",
    heads: "Köpfe",
  },
  blank: { other: "anderes Wort" },
  senses: { one: "eine Bedeutung", other: "andere Bedeutung" },
};
