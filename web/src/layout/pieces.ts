/** What moves on the screen when a step is opened. */

import type { Derivation } from "../model/derivation";
import type { Matrix, VisibleColumns } from "../model/matrix";
import type { ColumnName } from "./columns";
import { type GridPlaces, type Rect, span } from "./places";

/** Where a piece is at a time from 0 to 1. */
export interface Frame {
  at: number;
  rect: Rect;
  opacity: number;
  erased?: number; // the share that is erased, from the left
  steady?: boolean; // whether it moves at constant speed from here to the next frame
}

/** What moves as a whole. */
export interface Piece {
  // A picture is scaled with its numbers; a share is cut off where it has no space; a cover hides what is below.
  kind: "picture" | "share" | "frame" | "cover";
  site: string; // of its numbers
  label?: string; // before it
  values: number[];
  place: Rect; // where its numbers are laid out at full size
  frames: Frame[];
}

export interface Scene {
  grid: GridPlaces; // the matrix of the step
  before: GridPlaces | null; // the matrix of the previous step, where it was
  derivation: Derivation; // of the selected row
  row: number; // the selected token
  visible: VisibleColumns;
  read: (site: string) => Matrix;
  nameOf: (site: string) => string;
  /** Where the flow shows a row of a column, or the attention to one token; null if it is not on the screen. */
  flow: (column: ColumnName, row: number, attended?: number) => Rect | null;
}

/** The numbers that a row is computed from are replaced from left to right. */
export function change(scene: Scene): Piece[] {
  const { grid, row } = scene;
  const columns = [...grid.columns.keys()];
  const whole = span(grid, row, columns);
  if (!whole) return [];
  const name = sourceName(scene, 0);
  const piece = strip(scene, name, row, columns, whole);
  const frames = [0, 1].map((at) => ({ at, rect: piece.place, opacity: 1, erased: at }));
  return [{ ...piece, label: scene.nameOf(name), frames }];
}

export function into(from: Rect, to: Rect, leaves = 0.15, arrives = 0.8): Frame[] {
  return [
    { at: 0, rect: from, opacity: 1 },
    { at: leaves, rect: from, opacity: 1 },
    { at: arrives, rect: to, opacity: 1 },
    { at: Math.min(1, arrives + 0.15), rect: to, opacity: 0 },
    { at: 1, rect: to, opacity: 0 },
  ];
}

export function sourceName({ derivation }: Scene, i: number): string {
  return derivation.inputs[i]!.name;
}

/** A row of a site, laid out in a rectangle. Uses its first columns if it lacks the given ones. */
export function strip(
  scene: Scene,
  site: string,
  row: number,
  columns: number[],
  place: Rect,
): Omit<Piece, "frames"> {
  const matrix = scene.read(site);
  const first = columns.at(-1)! < matrix.columns ? columns[0]! : 0;
  const values = columns.map((_, i) => matrix.at(row, first + i)).filter((value) => !Number.isNaN(value));
  const width = (place.width * values.length) / columns.length;
  return { kind: "picture", site, values, place: { ...place, width } };
}

export function single(
  scene: Scene,
  site: string,
  row: number,
  column: number,
  place: Rect,
): Omit<Piece, "frames"> {
  return { kind: "picture", site, values: [scene.read(site).at(row, column)], place };
}
