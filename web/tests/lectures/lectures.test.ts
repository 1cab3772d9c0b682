import { expect, test } from "vitest";
import INPUTS from "../../../src/clearhead/lectures/inputs.json";
import QUESTIONS from "../../../src/clearhead/lectures/questions.json";
import { digitsOf, findStop, firstUnanswered, isStop, LECTURES, nextStop } from "../../src/lectures/lectures";
import { isAnswer } from "../../src/model/answers";
import { LANGUAGES } from "../../src/messages/languages";
import { FIGURES } from "../../src/views/lectures/figures";
import { KINDS } from "../../src/model/relationshipHead";
import { VIEWS } from "../../src/state/location";

const STOPS = LECTURES.flatMap(({ stops }) => stops);

test("every stop has a figure, and texts in every language", () => {
  for (const [language, { lectures }] of Object.entries(LANGUAGES)) {
    for (const { id } of LECTURES) expect(lectures.names[id], `${language} ${id}`).toBeTruthy();
    for (const { id, question } of STOPS) {
      const text = lectures.stops[id]!;
      const parts = [text.title, text.idea, text.notice, text.question, text.hint, text.notes];
      expect(parts.every(Boolean), `${language} ${id}`).toBe(true);
      expect(
        parts.every((part) => part.split("$").length % 2 === 1),
        `${language} ${id}: dollars`,
      ).toBe(true);
      if (question.kind === "choice") expect(text.options!.length).toBeGreaterThan(question.answer);
      else expect(text.solution).toContain("{answer}");
    }
  }
  for (const { id } of STOPS) expect(FIGURES[id], id).toBeDefined();
});

test("English titles and questions are those of the terminal", () => {
  expect(Object.keys(QUESTIONS)).toEqual(STOPS.map(({ id }) => id));
  for (const [id, question] of Object.entries(QUESTIONS)) {
    const { digits, ...texts } = question as { digits?: number };
    expect(LANGUAGES.en!.lectures.stops[id]).toMatchObject(texts);
    expect(digitsOf(id)).toBe(digits ?? 0);
  }
});

test("inputs shared with the terminal belong to a stop, and name the page's kinds of words", () => {
  for (const id of Object.keys(INPUTS)) expect(isStop(id), id).toBe(true);
  expect(INPUTS["002.10"].kinds).toEqual(KINDS);
});

test("solutions show whole numbers without decimals, and others with enough of them", () => {
  for (const { id, question } of STOPS)
    if (question.kind === "number") {
      expect(digitsOf(id) === 0, id).toBe(Number.isInteger(question.answer));
      expect(isAnswer([Number(question.answer.toFixed(digitsOf(id)))], question.answer), id).toBe(true);
      expect(isAnswer([Number(question.answer.toFixed(2))], question.answer), id).toBe(true);
    }
});

test("stops are numbered within their lecture", () => {
  for (const { id, stops } of LECTURES)
    expect(stops.map((stop) => stop.id)).toEqual(stops.map((_, i) => `${id}.${i + 1}`));
});

test("computes the answers", () => {
  const { E } = Math;
  const expected: Record<string, number[]> = {
    "000": [2, 4.5, E ** 2 / (E ** 2 + 1 + E), 1 / 3, 4, E / (2 * E + 1), 64, Math.sqrt(1.5), 1792, 0],
    "001": [0.25, 1, 44, 3 / 8, Math.log(100), 3, 1, E / (E + 1), 0],
    "002": [4, 42, 1, 14, 7, 1, 3 / 4, 7, 2048, E ** 10 / (3 * E ** 10 + 2), -0.75],
  };
  for (const { id, stops } of LECTURES)
    stops.forEach(({ question }, i) =>
      expect(question.answer, `${id}.${i + 1}`).toBeCloseTo(expected[id]![i]!, 9),
    );
});

test("goes from stop to stop", () => {
  const [first, last] = [STOPS[0]!, STOPS.at(-1)!];
  expect(findStop("")).toBe(first);
  expect(findStop("001.4").id).toBe("001.4");
  expect(findStop("001").id).toBe("001.1");
  expect([isStop("001"), isStop("999.1"), isStop("00")]).toEqual([true, false, false]);
  expect(nextStop("", 1)).toBe(STOPS[1]);
  expect(nextStop(first.id, -1)).toBeNull();
  expect(nextStop(last.id, 1)).toBeNull();
});

test("opens at the first stop without an answer", () => {
  const ids = STOPS.map(({ id }) => id);
  expect(firstUnanswered([])).toBe(STOPS[0]);
  expect(firstUnanswered([ids[0]!, ids[2]!])).toBe(STOPS[1]);
  expect(firstUnanswered(ids)).toBe(STOPS[0]);
});

test("links lead to views, with the inputs of the figure", () => {
  for (const { link, inputs } of STOPS) if (link) expect(VIEWS).toContain(link.target(inputs).view);
  const { link, inputs } = findStop("001.4");
  const { tiny } = link!.target({ ...inputs, sequence: "0110", query: [1, 0] });
  expect(tiny).toMatchObject({ sequence: "0110", W_Q: Array(2).fill([1, 0]) });
  expect(tiny!.W_K[0]![0]).toBeCloseTo(Math.log(3), 12);
});
