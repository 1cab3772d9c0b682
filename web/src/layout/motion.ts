/**
 * The motion of a step: which rows and numbers move, from where on the screen to where.
 * Only computed numbers move: the inputs of the step on their way in, and its results on their way to their cells.
 */

import { compare, divide, mask, softmax, sumValues, weighValues, write } from "./headMotion";
import { type Derivation, WEIGHED } from "../model/derivation";
import { isOverVocabulary, isWeight, parseSite } from "../model/sites";
import type { ColumnName } from "./columns";
import { change, type Frame, into, type Piece, type Scene, sourceName, strip } from "./pieces";
import { cell, span } from "./places";

/** The sites whose numbers move. */
export function motionSites(site: string, { inputs }: Derivation): string[] {
  const names = [...inputs.map(({ name }) => name), site].filter((name) => !isWeight(name));
  return [...new Set(names)];
}

export function planMotion(scene: Scene): Piece[] {
  const { head, part } = parseSite(scene.grid.site);
  if (part === "scores") return compare(scene);
  if (part === "scaled") return divide(scene);
  if (part === "masked") return mask(scene);
  if (part === "weights") return softmax(scene);
  if (part === WEIGHED) return weighValues(scene);
  if (part === "mixed") return sumValues(scene);
  if (part === "output" && head !== null) return write(scene);
  switch (scene.derivation.operation) {
    case "dot":
      return project(scene);
    case "sum":
      return add(scene);
    case "mean":
    case "scale":
      return collapse(scene);
    case "look up":
      return lookUp(scene);
    case "norm":
    case "head norm":
    case "rotate":
    case "cap":
    case "activate":
    case "gate":
    case "softmax":
      return isOverVocabulary(part) ? [] : change(scene);
    default:
      return [];
  }
}

/** The columns of the flow that show the input of a projection. */
const SHOWN_IN: Record<string, ColumnName> = {
  normed: "norm",
  normed2: "norm2",
  hidden: "feedforward",
  final: "final",
};

/** A row comes from the flow, or from where it was, and a new one takes its place from left to right. */
function project(scene: Scene): Piece[] {
  const { before, row } = scene;
  return change(scene).map((piece) => {
    const column = SHOWN_IN[parseSite(piece.site).part];
    const shown = before?.site === piece.site ? span(before, row, [...before.columns.keys()]) : null;
    const from = (column && scene.flow(column, row)) ?? shown;
    const rect = piece.place;
    if (!from) return piece;
    const frames: Frame[] = [
      { at: 0, rect: from, opacity: 1, erased: 0 },
      { at: 0.45, rect, opacity: 1, erased: 0 },
      { at: 0.55, rect, opacity: 1, erased: 0 },
      { at: 1, rect, opacity: 1, erased: 1 },
    ];
    return { ...piece, frames };
  });
}

/** Rows that are added start one below the other, within the matrix, and fall together. */
function add(scene: Scene): Piece[] {
  const { grid, row, derivation } = scene;
  const columns = [...grid.columns.keys()];
  const to = span(grid, row, columns);
  const names = derivation.inputs.map(({ name }) => name).filter((name) => !isWeight(name));
  if (!to) return [];
  const pitch = to.height + 3;
  const bottom = Math.max(...[...grid.rows.values()].map(({ y }) => y));
  const top = Math.min(to.y - ((names.length - 1) / 2) * pitch, bottom - (names.length - 1) * pitch);
  return names.map((name, i) => {
    const from = { ...to, y: top + i * pitch };
    return { ...strip(scene, name, row, columns, from), label: scene.nameOf(name), frames: into(from, to) };
  });
}

/** A whole row collapses into one number. */
function collapse(scene: Scene): Piece[] {
  const { grid, row } = scene;
  const to = cell(grid, row, 0);
  if (!to) return [];
  const name = sourceName(scene, 0);
  const count = Math.min(scene.read(name).columns, Math.floor((grid.end - to.x) / to.width));
  const columns = Array.from({ length: count }, (_, i) => i);
  const from = { ...to, width: count * to.width };
  return [{ ...strip(scene, name, row, columns, from), label: scene.nameOf(name), frames: into(from, to) }];
}

/** The vector of a token comes from the token. */
function lookUp(scene: Scene): Piece[] {
  const { grid, row } = scene;
  const columns = [...grid.columns.keys()];
  const to = span(grid, row, columns);
  const from = scene.flow("tokens", row);
  if (!to || !from) return [];
  const frames: Frame[] = [
    { at: 0, rect: from, opacity: 0 },
    { at: 0.1, rect: from, opacity: 1 },
    { at: 0.8, rect: to, opacity: 1 },
    { at: 1, rect: to, opacity: 1 },
  ];
  return [{ ...strip(scene, grid.site, row, columns, to), frames }];
}
