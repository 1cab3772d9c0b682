/** The German texts call one thing by one name. */

import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { report } from "../../src/messages/report.de";

const FOLDER = new URL("../../src/messages/", import.meta.url);
const FILES = readdirSync(FOLDER).filter((name) => /(^|\.)de\.ts$/.test(name));

// “der Softmax” is also the genitive and dative of “die Softmax”: after a comma or at the start, it is the nominative.
const MASCULINE = /(?:\b(?:des|dem|den|vom|zum|beim|im|am|ein|einem|einen|eines) |(?:Der |, der ))Softmax/g;

test("Softmax is feminine", () => {
  expect(FILES.length).toBeGreaterThan(5);
  for (const name of FILES)
    expect([name, readFileSync(new URL(name, FOLDER), "utf-8").match(MASCULINE)]).toEqual([name, null]);
});

test("the progress of a report separates thousands as German does", () => {
  expect(report.doing("measuring 1,234,567 tokens of held-out text")).toBe("Messung an 1.234.567 Tokens …");
  expect(report.doing("measuring SmolLM2")).toBe("Messung an SmolLM2 …");
});
