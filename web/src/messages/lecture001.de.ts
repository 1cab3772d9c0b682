/** Vorlesung 001 auf Deutsch. */

import type { StopText } from "./lectures.en";

export const STOPS_001: Record<string, StopText> = {
  "001.1": {
    title: "Sprachmodellierung",
    idea: "Ein Sprachmodell gibt einem Text eine Wahrscheinlichkeit, Token für Token: $P(w) = \\prod_i P(w_i \\mid w_1, \\dots, w_{i-1})$. Modelle unterscheiden sich darin, was sie von der Vergangenheit kennen. Ein N-Gramm-Modell sieht nur die letzten $n-1$ Tokens, ein RNN packt alle in einen Vektor $h$, und ein Transformer blickt auf jedes einzelne zurück.",
    notice:
      "Das Bigramm akzeptiert „the chicken was wide“: Bei „was“ hat es das Huhn vergessen. Mit dem ganzen Kontext ist die Wahrscheinlichkeit 0.",
    question:
      "Zähle von Hand in den drei ursprünglichen Sätzen: Welche Wahrscheinlichkeit gibt das Bigramm „the road was tired“?",
    hint: "Teile für jedes Token, wie oft es auf das Token davor folgt, durch die Zahl aller Tokens, die darauf folgen. Das erste Token folgt auf den Satzanfang.",
    solution:
      "Alle drei Sätze beginnen mit „the“: 1. Auf „the“ folgt in zwei von vier Fällen „road“: 1/2. Auf „road“ folgt nur „was“: 1. Auf „was“ folgt in einem von zwei Fällen „tired“: 1/2. Das Produkt ist {answer}.",
    notes:
      "Lies die Tabelle von oben nach unten und lass die Gruppe jede Zahl vorhersagen. Wechsle dann vom Bigramm zum ganzen Kontext und frage, was sich in der Zeile des letzten Tokens geändert hat. Auch der ganze Kontext wird hier ausgezählt; RNNs und Transformer schätzen und haben so auch für nie gesehene Kontexte eine Antwort.",
  },
  "001.2": {
    title: "Eine Schnittstelle, zwei Netze",
    idea: "Eine rekurrente Schicht und eine Transformer-Schicht haben dieselbe Schnittstelle: $(e_1', e_2', e_3') = \\text{RNN}(e_1, e_2, e_3)$ oder $\\text{Transformer}(e_1, e_2, e_3)$. Für jedes Token geht ein Vektor hinein und einer kommt heraus, der auch von den Tokens davor abhängt. Das RNN gibt einen Zustand weiter, die Aufmerksamkeit mischt die Vektoren direkt.",
    notice:
      "„bats“ geht in beiden Sätzen mit demselben Vektor hinein und kommt mit verschiedenen heraus. Ändere eine Zahl des ersten Vektors: Jede Ausgabe ändert sich.",
    question:
      "In „I swing bats“ änderst du nur $e_2$. Welche Ausgaben ändern sich in jedem der beiden Netze?",
    options: ["nur $e_2'$", "$e_2'$ und $e_3'$", "alle drei"],
    hint: "Jede Ausgabe wird aus dem eigenen Vektor und denen davor berechnet.",
    solution:
      "$e_2'$ und $e_3'$ ändern sich. $e_1'$ wurde allein aus $e_1$ berechnet; kein späteres Token kann es beeinflussen.",
    notes:
      "Das Gleichheitszeichen der Vorlesung bedeutet gleiche Ein- und Ausgaben, nicht gleiche Zahlen. Die Aufmerksamkeit ist hier die einfachste: Skalarprodukte der Vektoren selbst. Unter „Wortvektoren“ zeigt ein echtes Modell die beiden „bats“.",
  },
  "001.3": {
    title: "Das durchgehende Beispiel",
    idea: "Eine Folge von Ziffern endet mit 1, wenn eine der Ziffern eine 1 war, sonst mit 0. Auf eine 1 folgen nun viele Nullen. Ein RNN reicht die Information von Zelle zu Zelle weiter, $h_t = \\tanh(x_t w + h_{t-1} U + b)$, hier mit 5 bis 20 Ziffern trainiert. Die Aufmerksamkeit greift direkt auf die 1 zu.",
    notice:
      "Hier schwindet die Information von Zelle zu Zelle; die Aufmerksamkeit hat sie noch. Mit Startwert 7 und 200 Schritten trägt das Netz sie bis zum Ende, mit Startwert 2 ist sie nach zehn Zellen verloren, wie ohne Training.",
    question:
      "Eine Zelle behalte neun Zehntel ihres Zustands, $h_t = 0{,}9\\,h_{t-1} + x_t$. Nach einer 1 und wie vielen Nullen ist er erstmals unter 0,01?",
    hint: "Der Zustand nach $n$ Nullen ist $0{,}9^n$. Rechne mit Logarithmen.",
    solution:
      "$0{,}9^n < 0{,}01$ gilt für $n > \\ln 0{,}01 / \\ln 0{,}9 \\approx 43{,}7$, also zum ersten Mal nach {answer} Nullen.",
    notes:
      "Bleib fair gegenüber RNNs: Mit kurzen Folgen trainiert, tragen manche die Information durch 200 Nullen und andere verlieren sie, je nach Startwert. Nur mit langen Folgen trainiert, lernen sie kaum etwas. Der Vorteil der Aufmerksamkeit ist, dass sich der lange Fall lernen lässt; das Experiment zeigt beides.",
  },
  "001.4": {
    title: "Schlüssel und eine Anfrage",
    idea: "Die Schlüssel sind die Einbettungen der Tokens, $0 = [1; 0]$ und $1 = [0; 1]$; die Anfrage sagt, was gesucht wird. Ein Score ist ein Skalarprodukt, $s_i = k_i \\cdot q$; die Softmax macht aus Scores Gewichte $\\alpha_i$, und das Ergebnis ist $\\sum_i \\alpha_i e_i$. Mit 3 statt $e$ geht das im Kopf.",
    notice:
      "In 0010 bekommt die 1 mit Basis 3 die Hälfte des Gewichts; das Ergebnis ist [1/2; 1/2] statt des Mittelwerts [3/4; 1/4]. In 0000 gibt es keine 1 zu finden, und das Ergebnis ist [1; 0].",
    question: "Nimm die Folge 0110, die Anfrage [0; 1] und die Basis 3. Welches Gewicht bekommt jede 1?",
    hint: "Eine 0 zählt $3^0 = 1$, eine 1 zählt $3^1 = 3$. Teile durch die Summe über alle vier Tokens.",
    solution: "Jede 1 zählt 3, jede 0 zählt 1, und die Summe ist 8: $3/8$, also {answer}.",
    notes:
      "Rechne erst mit Basis 3 an der Tafel und wechsle dann zu $e$: Die Gewichte werden 0,17488 und 0,47537, sonst ändert sich nichts. Basis 3 ist dasselbe wie mit $\\ln 3$ multiplizierte Scores; so stellt der Link den Mini-Kopf ein. Lass jemanden eine Anfrage finden, die Nullen sucht.",
  },
  "001.5": {
    title: "Lange Folgen verflachen die Aufmerksamkeit",
    idea: "Jede Null vergrößert den Nenner der Softmax um 1, deshalb sinkt das Gewicht einer einzelnen 1 mit der Länge der Folge: $\\alpha = e^b / (e^b + n)$ bei $n$ Nullen. Längere Schlüssel helfen: Mit $k_i = e_i W^K$ und $W^K = b \\cdot I$ ist der Score der 1 gleich $b$ und nicht mehr 1.",
    notice:
      "Bei 100 Nullen und einfachen Schlüsseln entfallen nur 2,6 % des Gewichts auf die 1. Setze die Verstärkung auf 10: Dann sind es 99,5 %, und bei drei Nullen 0,99986.",
    question: "Bei welcher Verstärkung bekommt die 1 genau die Hälfte des Gewichts, wenn es 100 Nullen sind?",
    hint: "Die 1 muss so viel zählen wie alle Nullen zusammen: $e^b = 100$.",
    solution: "$e^b = 100$, also $b = \\ln 100 \\approx$ {answer}.",
    notes:
      "Beginne mit einfachen Schlüsseln und zieh die Nullen bis 1000, bevor du die Verstärkung änderst. Die nötige Verstärkung wächst nur mit dem Logarithmus der Länge; deshalb kommen gelernte Schlüssel mit langen Texten zurecht. Frage, was eine sehr große Verstärkung mit dem Gradienten der Softmax macht.",
  },
  "001.6": {
    title: "Skalarprodukt und lineare Aufmerksamkeit",
    idea: "Der einfache Score ist $k \\cdot q$. Die „lineare“ Aufmerksamkeit setzt eine Matrix dazwischen, $k W q$; ob $W$ auf den Schlüssel oder auf die Anfrage wirkt, ist egal. Ein Transformer hat auf jeder Seite eine: $(k W^K) \\cdot (q W^Q)$, und das entspricht $W = W^K (W^Q)^\\top$.",
    notice:
      "Der Schlüssel einer 1 und die Anfrage einer 0 haben nichts gemeinsam, $k \\cdot q = 0$. Mit den Matrizen ist der Score 10: Die 0 sucht jetzt eine 1. Alle vier Rechenwege stimmen überein.",
    question:
      "Sei $k = [0; 1]$, $q = [1; 0]$, und $W$ habe die Zeilen $[1; 2]$ und $[3; 4]$. Wie groß ist $k W q$?",
    hint: "$kW$ wählt eine Zeile von $W$, und das Skalarprodukt mit $q$ dann eine ihrer Zahlen.",
    solution: "$kW$ ist die zweite Zeile, $[3; 4]$; ihr Skalarprodukt mit $q = [1; 0]$ ist {answer}.",
    notes:
      "Wenn eine Matrix genügt, warum dann zwei? $W$ hat $d \\times d$ Zahlen, während $W^K$ und $W^Q$ schmal sein können, je $d \\times d_k$, und dann hat $W$ einen niedrigen Rang. Vektoren sind auf dieser Seite Zeilen, deshalb stehen Matrizen rechts von ihnen; die Vorlesung schreibt manche als Spalten.",
  },
  "001.7": {
    title: "Selbstaufmerksamkeit",
    idea: "Jetzt ist jedes Token zugleich Schlüssel und Anfrage. Mit den Einbettungen als Zeilen von $E$: $Q = E W^Q$, $K = E W^K$, $S = Q K^\\top$, und die Softmax jeder Zeile von $S$ ergibt $A$. Zeile $i$ von $A$ sagt, wie Token $i$ seine Aufmerksamkeit verteilt.",
    notice:
      "Mit $W^Q$ wie in der Vorlesung ist jede Zeile von $Q$ gleich $[0; 1]$: Alle vier Tokens suchen eine 1, und alle Zeilen von $A$ sind gleich. Ändere eine Zeile von $W^Q$, und eine der Ziffern sucht etwas anderes. (Die Vorlesung schreibt $Q = E (W^Q)^\\top$, ihre Zahlen folgen aber aus $Q = E W^Q$.)",
    question: "$W^Q$ habe die Zeilen $[0; 1]$ und $[1; 0]$. Was sucht eine 0?",
    options: ["Nullen", "Einsen", "beide gleichermaßen"],
    hint: "Die Anfrage einer 0 ist $[1; 0]\\, W^Q$, die erste Zeile von $W^Q$.",
    solution:
      "Die erste Zeile von $W^Q$ ist die Anfrage einer 0: $[0; 1]$, und das passt zu den Schlüsseln der Einsen. Umgekehrt suchen Einsen nach Nullen.",
    notes:
      "Lies $S$ als Tabelle von Skalarprodukten, eines für jede Anfrage und jeden Schlüssel. Weise darauf hin, dass die erste Zeile von $W^Q$ die Anfrage einer 0 ist und die zweite die einer 1.",
  },
  "001.8": {
    title: "Die Folge 0 1, von Anfang bis Ende",
    idea: "Zwei Tokens genügen, um den ganzen Kopf durchzurechnen. Die Ausgabe jedes Tokens ist eine Mischung der Einbettungen, $A E$. Der Transformer-Artikel fügt weitere Parameter hinzu, $V = E W^V$ und $W^O$, und dividiert die Scores: $\\operatorname{softmax}(Q K^\\top / \\sqrt{d_k})\\, V$.",
    notice:
      "Sucht jede Ziffer sich selbst, ist $A$ fast die Einheitsmatrix und $A E$ fast $E$. Suchen beide eine 1, werden beide Zeilen zu $[0{,}00005;\\ 0{,}99995]$: Jedes Token weiß, dass es eine 1 gibt. (Die Vorlesung schreibt hier $W^K = I$, rechnet aber mit zehnfachen Schlüsseln.)",
    question:
      "Jede Ziffer sucht sich selbst, aber mit einfachen Schlüsseln, $W^K = I$. Welches Gewicht legt die 0 auf sich selbst?",
    hint: "Die Scores der 0 sind 1 und 0, das Gewicht ist also $e / (e + 1)$.",
    solution: "$e^1 / (e^1 + e^0) = e / (e + 1) \\approx$ {answer}.",
    notes:
      "Die Vorlesung schreibt $W^O A E$; mit Zeilenvektoren heißt das Produkt $A V W^O$. Schalte die Division ein: Die Scores sinken von 10 auf 7,07, und die Gewichte werden etwas weniger scharf.",
  },
  "001.9": {
    title: "Maskierung und Positionskodierung",
    idea: "Zwei Einzelheiten machen daraus ein Sprachmodell. Die Maske hindert ein Token daran, auf spätere zu achten, die es ja vorhersagen soll. Und weil die Aufmerksamkeit nur gewichtet summiert, kennt ein Token die Reihenfolge derer vor ihm nicht, außer man addiert zu jeder Einbettung eine Position: $x_i = e_i + [\\sin i; \\cos i]$ mit $i = 0, 1, 2, \\dots$ wie im Artikel. Hier ist $q = x$, $k = 2x$ und $v = x$.",
    notice:
      "Ohne Positionen ändert das Vertauschen der ersten beiden Tokens die Ausgabe des letzten nicht, mit Positionen schon. Ohne Maske füllt sich das obere Dreieck: Die Tokens sehen ihre eigene Zukunft.",
    question:
      "Mit Maske und ohne Positionen: Bekommt das letzte Token von 0010 dieselbe Ausgabe wie das letzte von 1000?",
    options: ["dieselbe Ausgabe", "verschiedene Ausgaben"],
    hint: "Das letzte Token sieht alle vier Tokens. Hängt die Summe davon ab, wo die 1 steht?",
    solution:
      "Dieselbe: Beide Folgen bestehen aus drei Nullen und einer Eins, und eine gewichtete Summe hängt nicht von der Reihenfolge ihrer Summanden ab.",
    notes:
      "Ganz blind für die Reihenfolge ist ein kausales Modell ohne Positionen nicht: Die Tokens dazwischen sehen verschiedene Kontexte, und eine zweite Schicht kann das nutzen. Für eine Schicht und das letzte Token sind die früheren Tokens eine bloße Menge (Bag of Words). Frage, was beim Training ohne Maske geschehen würde.",
  },
};
