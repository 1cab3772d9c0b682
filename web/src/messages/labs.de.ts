/** Die Experimente der Vorlesungen auf Deutsch; auf Englisch sagt der Server, worum es geht. */

import type { Messages } from "./en";

export const LABS: Messages["labs"]["told"] = {
  attention: {
    title: "Aufmerksamkeit, Zahl für Zahl",
    says: "Die Folge aus Nullen und Einsen der Vorlesung, wobei 0 für [1, 0] und 1 für [0, 1] steht. Eine Anfrage wird mit jedem Schlüssel verglichen, aus den Punkten werden Gewichte, und die Gewichte mischen die Werte. Mit zehnmal so langen Schlüsseln geht fast das ganze Gewicht an die 1.",
    question:
      "Welche Verstärkung gibt der 1 so viel Gewicht wie allen Nullen zusammen? Hängt das davon ab, wie viele Nullen es sind?",
    settings: {
      sequence: "die Ziffern, jede 0 oder 1",
      query: "die Ziffer, die gesucht wird",
      boost: "wie lang die Schlüssel sind",
      base: "des Softmax; 3 ist die Abkürzung der Vorlesung",
    },
  },
  scale: {
    title: "Warum durch √d_k geteilt wird",
    says: "Anfragen und Schlüssel aus Zufallszahlen: je länger die Vektoren, desto weiter liegen ihre Produkte auseinander, wie √d. Ungeteilt gibt der Softmax dann fast alles an ein Wort und lernt kaum noch; durch √d_k geteilt bleiben die Gewichte, wie sie waren.",
    question: "Wie groß ist d, wenn das größte Gewicht die Hälfte übersteigt? Was würde aus dem Lernen?",
    settings: {
      words: "wie viele angesehen werden",
      widest: "das größte d",
      samples: "Anfragen je Breite",
      seed: "der Zufallszahlen",
    },
  },

  "any-one": {
    title: "War eine der Ziffern eine 1?",
    says: "Eine 1 und dann hundert Nullen: gab es eine 1? Ein rekurrentes Netz muss die Nachricht von Zustand zu Zustand tragen; Aufmerksamkeit blickt geradewegs auf sie zurück; ein n-Gramm hat sie vergessen. Mit kurzen Folgen trainiert, in denen die Nachricht nicht weit zu gehen hat, trägt ein rekurrentes Netz sie womöglich durch 200 Ziffern. Nur mit 101 Ziffern trainiert lernt es nichts, und die Aufmerksamkeit lernt alles: was sie bringt, ist, dass der lange Fall gelernt werden kann. Diese Aufmerksamkeit kennt keine Positionen, damit ungesehene Längen ihr nichts Neues sind. Die eine Folge ohne 1 zählt die Hälfte dessen, was richtig ist, alle anderen die andere: ein Netz, das nichts gelernt hat, liegt irgendwo um ein Halb. Um jede Linie liegen ihre Durchgänge.",
    question:
      "Warum lernt das Netz, das die Nachricht durch 200 Ziffern tragen kann, dies nicht aus 101 Ziffern?",
    settings: {
      trained: "mit 5 bis 20 Ziffern, mit 101 oder nacheinander mit beiden",
      seeds: "wie oft alles getan wird, mit anderen Anfangsgewichten",
      steps: "des Trainings",
      batch: "Folgen je Schritt",
      width: "Merkmale jedes Netzes",
    },
  },
  matrix: {
    title: "Ein Kopf, als Schleifen und als Matrizen",
    says: "Derselbe Kopf zweimal: Wort für Wort in Schleifen, wie man ihn erklärt, und als vier Matrixprodukte, wie man ihn berechnet. Die Zahlen sind bis auf Rundung dieselben; die Zeit ist es nicht, und je mehr Wörter es sind, desto weiter liegen beide auseinander.",
    question:
      "Wie viel länger brauchen die Schleifen, wenn es doppelt so viele Wörter sind, und wie viel länger die Matrizen? Warum?",
    settings: {
      longest: "die meisten Wörter",
      width: "Merkmale jedes Wortes und des Kopfes",
      repeats: "wie oft jedes läuft; das schnellste zählt",
      seed: "der Zufallszahlen",
    },
  },
  position: {
    title: "Wozu der Platz eines Wortes gut ist",
    says: "Ein Satz geht durch einen kleinen Transformer und dann noch einmal mit vertauschten Wörtern. Aufmerksamkeit allein kennt keine Reihenfolge: ohne Positionen bekommt jedes Wort überall denselben Vektor, und der Satz ist ein Sack voller Wörter. Mit Positionen ändern sich die Vektoren. Die Gewichte sind zufällig; kein Training könnte die erste Hälfte ändern.",
    question:
      "Warum weiß ein kausales Modell auch ohne Positionen etwas über die Reihenfolge? Welches Wort behielte seinen Vektor, wenn es an seinem Platz bliebe?",
    settings: {
      sentence: "seine Wörter",
      position: "was hinzukommt",
      causal: "ob ein Wort nur die vor ihm sieht",
      seed: "der Gewichte und des Vertauschens",
    },
  },
  window: {
    title: "Schreiben durch ein Fenster",
    says: "Ein Modell, das acht Token sieht, schreibt weiter: aus w1 … w8 wird w9, aus w2 … w9 wird w10, und so fort. Was das Fenster verlassen hat, ist wie nie gesagt: der Text ist derselbe, was immer dort stand. Mit dem ganzen Text vor Augen schreibt dasselbe Modell vielleicht etwas anderes.",
    question: "Wie breit muss das Fenster sein, bis das Modell den Namen des Königs wieder weiß?",
    settings: {
      prompt: "wovon das Modell weiterschreibt",
      context: "Token in Sicht",
      tokens: "die geschrieben werden",
    },
  },
  blank: {
    title: "Welche Wörter die Lücke entscheiden",
    says: "Damians Testament: welche früheren Wörter lassen das Modell ein Wort in die Lücke setzen? Zwei Antworten. Die Zuschreibung teilt den Logit des Wortes genau darauf auf, was die Köpfe am Ende von jedem Token bringen; sie sieht nur den letzten Schritt. Das Ausschalten bringt den Vektor jedes Tokens am Eingang zum Schweigen und misst, was aus der logarithmischen Wahrscheinlichkeit des Wortes wird; es sieht jeden Weg, der dorthin führt.",
    question:
      "Von manchen Token bringen die Köpfe am Ende wenig, und doch fehlen sie sehr. Was könnten sie für die anderen tun? Und welche Wörter entscheiden, wenn in der Lücke his steht?",
    settings: {
      sentence: "bis zur Lücke",
      word: "für die Lücke; sein erstes Token zählt",
    },
  },
  senses: {
    title: "Ein Wort, zwei Bedeutungen",
    says: "I'm scared of bats; I swing bats. Ein statischer Vektor ist in beiden Sätzen derselbe. In einem Transformer beginnt ein Wort mit seinem statischen Vektor und nimmt Block für Block die Wörter vor ihm auf: seine Vektoren hängen vom Zusammenhang ab. Das tun auch die Zustände eines rekurrenten Netzes. Wie weit zwei auseinanderliegen, hängt nicht nur von der Bedeutung ab; zwei mit derselben Bedeutung sind das Maß. Zwei kleine Netze, ein LSTM und ein Transformer, lernen hier einige hundert Wörter, aus Sätzen, in denen von der Bedeutung abhängt, was auf das Wort folgt; die gezeigten haben sie nicht gelesen. Von bats weiß ein solches Netz nur, welche seiner Wörter zueinander gehören. Im Modell ist Stufe 0 die Einbettung, dann kommt der Eingang jedes Blocks, dann das Ende.",
    question:
      "In welchem Block trennen sich die beiden Bedeutungen? Nimm eigene Sätze, in denen das Wort, das die Bedeutung verrät, erst danach kommt: was geschieht in einem Modell, das nur zurückblickt?",
    settings: {
      word: "bats oder bank, oder ein anderes mit eigenen Sätzen",
      one: "Sätze der einen Bedeutung, ein / dazwischen",
      other: "Sätze der anderen Bedeutung, ein / dazwischen",
      seeds: "wie oft kleine Netze hier lernen; 0 lässt das weg",
      steps: "des Trainings",
    },
  },
  pronoun: {
    title: "Welches Wort ist it?",
    says: "Das Huhn ging nicht über die Straße, weil es zu müde oder sie zu breit war: im Englischen steht beide Male it. Das Bild der Vorlesung zeigt, wie it auf das blickt, wofür es steht. In einem Modell, das nur zurückblickt, kann it das Adjektiv nicht gesehen haben: seine Aufmerksamkeit ist in beiden Sätzen dieselbe. Erst das Adjektiv kann es wissen, und es weiß es: über alle Köpfe zusammen blickt tired mehr auf chicken und wide mehr auf road. Dann lernen zwei kleine Transformer aus Sätzen unserer Geschichten, die die Wahrheit kennen. Sie füllen Lücken, und auch ein Pronomen ist eine Lücke: bei it, und am Ende noch einmal, sollen sie das gemeinte Nomen sagen. In dem, der beide Seiten sieht, kommt das Bild heraus: das Pronomen blickt auf sein Nomen, und das des anderen Satzes, an seine Stelle gesetzt, kehrt die Antwort um. In dem, der zurückblickt, ist es in beiden Sätzen dasselbe und rät; erst das Ende kann es wissen. Die beiden Nomen eines Satzes, der sie prüft, wurden nie zusammen gelesen.",
    question:
      "Warum hat das Modell, das zurückblickt, bei it nie mehr als die Hälfte richtig? Schalte asked aus, sodass nur Lücken gefüllt werden: blickt it dann auf sein Nomen? Und was liest eine Sonde dort noch?",
    settings: {
      before: "was gleich ist",
      first: "das Wort, das das eine meint",
      second: "das Wort, das das andere meint",
      one: "was das erste Wort meint",
      other: "was das zweite Wort meint",
      pronoun: "das Wort, das für eines von beiden steht",
      seeds: "wie oft zwei Modelle aus Geschichten lernen; 0 lässt das weg",
      steps: "des Trainings",
      asked: "ob nach dem Nomen des Pronomens gefragt wird und nicht nur nach Lücken",
    },
  },
  neighbors: {
    title: "Katze und Hund: Wörter in ähnlicher Umgebung",
    says: "I have to make sure that the cat gets fed; I forgot to make sure that the dog gets fed. Ein Skip-gram lernt, die Wörter um jedes Wort unserer Geschichten zu erraten, und so bekommen Wörter in ähnlicher Umgebung ähnliche Vektoren: der Katze am nächsten sind die anderen Tiere, der Hund unter ihnen.",
    question:
      "Welche Wörter sind anna am nächsten, oder red? Ist mit einem Fenster von 10 noch das am nächsten, was an der Stelle der Katze stehen könnte?",
    settings: {
      word: "dessen Nachbarn gezeigt werden; eines der Wörter der Geschichten",
      count: "Nachbarn, die gezeigt werden",
      stories: "aus wie vielen gelernt wird",
      window: "wie weit der fernste Nachbar sein darf",
      width: "Zahlen eines Vektors",
      epochs: "wie oft durch die Geschichten",
      seed: "der Vektoren zu Beginn und dessen, was gezogen wird",
    },
  },
  stream: {
    title: "Ein Kopf trägt Information von Strom zu Strom",
    says: "Zufällige Token, zweimal gesagt: nur wer zurückblickt, kann wissen, was kommt. Zwei Blöcke lernen es von Grund auf. Ein Kopf des ersten (der vier Positionen sieht) sagt jedem Token, welches vor ihm stand; Köpfe des zweiten finden das Token, das damals nach demselben kam, und bringen es her. Der Verlust sinkt, wenn beide da sind. Ohne einen von ihnen tut sein Zwilling, was er kann; ohne alle ist die Arbeit verloren.",
    question:
      "Welcher entsteht zuerst, der Kopf, der auf das Token davor blickt, oder der, der auf das blickt, was danach kam? Was tut der Verlust, bis beide da sind?",
    settings: {
      heads: "jedes Blocks",
      steps: "des Trainings",
      seed: "der Gewichte und der Token",
    },
  },
};
