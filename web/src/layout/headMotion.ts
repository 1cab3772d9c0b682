/** The animation of an attention head's steps. */

import { WEIGHED } from "../model/derivation";
import { poolLargest } from "../model/matrix";
import { change, type Frame, into, type Piece, type Scene, single, sourceName, strip } from "./pieces";
import { beside, cell, centered, grow, heading, type Rect, scale, span, union } from "./places";

/** The selected query goes from key to key; each time, a score falls into the selected row. */
export function compare(scene: Scene): Piece[] {
  const { grid, row, flow } = scene;
  const query = sourceName(scene, 0);
  const keys = [...grid.columns.keys()];
  if (!grid.rows.has(row)) return [];
  // In the flow, the query moves along its own column, beside the keys; otherwise along the headings of the matrix.
  const pairs = keys.flatMap((key) => {
    const [own, other] = [flow("query", key), flow("key", key)];
    return own && other ? { own, other } : [];
  });
  const inFlow = pairs.length === keys.length;
  const meetings = inFlow ? pairs.map(({ other }) => other) : keys.map((key) => heading(grid, key)!);
  const stops = inFlow ? pairs.map(({ own }) => own) : meetings.map((at) => ({ ...at, y: at.y - at.height }));
  const pause = 0.5 / Math.max(1, keys.length - 1); // from one key to the next
  const scores = keys.map((key, i): Piece => {
    const to = cell(grid, row, key)!;
    const from = centered(to, meetings[i]!);
    const leaves = i * pause;
    const frames: Frame[] = [
      { at: 0, rect: from, opacity: 0 },
      { at: leaves, rect: from, opacity: 0 },
      { at: leaves + 0.05, rect: from, opacity: 1 },
      { at: leaves + 0.45, rect: to, opacity: 1 },
      { at: 1, rect: to, opacity: 1 },
    ];
    return { ...single(scene, grid.site, row, key, to), frames };
  });
  const along = (rects: Rect[]): Frame[] => [
    ...rects.map((rect, i) => ({ at: i * pause, rect, opacity: 1 })),
    { at: 0.6, rect: rects.at(-1)!, opacity: 0 },
    { at: 1, rect: rects.at(-1)!, opacity: 0 },
  ];
  const values = [...poolLargest(scene.read(query).row(row), QUERY_CELLS)];
  const traveler: Piece = { kind: "picture", site: query, values, place: stops[0]!, frames: along(stops) };
  if (!inFlow) return [...scores, traveler];
  const frames = along(pairs.map(({ own, other }) => grow(union([own, other]), 2)));
  return [...scores, traveler, { kind: "frame", site: query, values: [], place: frames[0]!.rect, frames }];
}

const QUERY_CELLS = 10; // as in the flow

/** Each score of the selected row shrinks in its place. */
export function divide(scene: Scene): Piece[] {
  const { grid, row, derivation } = scene;
  const name = sourceName(scene, 0);
  const factor = 1 / Math.sqrt(derivation.constants.d_k ?? 1);
  const columns = [...grid.columns.keys()];
  const whole = span(grid, row, columns);
  if (!whole) return [];
  const fading = (from: Rect, to: Rect): Frame[] => [
    { at: 0, rect: from, opacity: 1 },
    { at: 0.7, rect: to, opacity: 1 },
    { at: 1, rect: to, opacity: 0 },
  ];
  const numbers = columns.map((column): Piece => {
    const rect = cell(grid, row, column)!;
    return { ...single(scene, name, row, column, rect), frames: fading(rect, scale(rect, factor)) };
  });
  return [{ kind: "cover", site: name, values: [], place: whole, frames: fading(whole, whole) }, ...numbers];
}

/** The masked scores are erased from left to right. */
export function mask(scene: Scene): Piece[] {
  const { grid } = scene;
  const name = sourceName(scene, 0);
  const columns = [...grid.columns.keys()];
  const width = grid.end - grid.columns.get(columns[0]!)!.x;
  return [...grid.rows.keys()].flatMap((row) => {
    const [first, last] = scene.visible(row);
    const past = columns.filter((column) => column < first);
    const future = columns.filter((column) => column >= last);
    return [past, future].flatMap((masked) => {
      const rect = span(grid, row, masked);
      if (!rect) return [];
      const start = (rect.x - grid.end + width) / width;
      const end = Math.max(start, (rect.x + rect.width - grid.end + width) / width);
      return {
        ...strip(scene, name, row, masked, rect),
        frames: [
          { at: 0, rect, opacity: 1, erased: 0 },
          { at: start, rect, opacity: 1, erased: 0, steady: true },
          { at: Math.min(1, end), rect, opacity: 1, erased: 1 },
          { at: 1, rect, opacity: 1, erased: 1 },
        ],
      };
    });
  });
}

/** The scores of the selected row become the shares of one bar, as long as the row; the shares return to their cells. */
export function softmax(scene: Scene): Piece[] {
  const { grid, row } = scene;
  const source = sourceName(scene, 0);
  const weights = scene.read(grid.site);
  const whole = span(grid, row, [...grid.columns.keys()]);
  if (!whole) return [];
  const [first, last] = scene.visible(row);
  const bar: Piece = {
    kind: "frame",
    site: grid.site,
    label: "Σ = 1",
    values: [],
    place: whole,
    frames: [0, 1, 1, 0].map((opacity, i) => ({ at: SHARED[i]!, rect: whole, opacity })),
  };
  let x = whole.x;
  const shares = [...grid.columns.keys()].flatMap((column) => {
    const rect = cell(grid, row, column);
    if (!rect || column < first || column >= last) return [];
    const share = { ...rect, x, width: weights.at(row, column) * whole.width };
    x += share.width;
    const frames = (...opacities: number[]): Frame[] =>
      opacities.map((opacity, i) => ({ at: SHARED[i]!, rect: i % 3 === 0 ? rect : share, opacity }));
    const kind = "share" as const;
    return [
      { ...single(scene, source, row, column, rect), kind, frames: frames(1, 0, 0, 0) },
      { ...single(scene, grid.site, row, column, rect), kind, frames: frames(0, 1, 1, 1) },
    ];
  });
  return [...shares, bar];
}

const SHARED = [0, 0.35, 0.7, 1]; // times from the scores to the bar, and from the bar to the weights

/** Each weight of the selected token goes to a value and passes over it, number by number. */
export function weighValues(scene: Scene): Piece[] {
  const { grid, before, row } = scene;
  const [weights, values] = [sourceName(scene, 0), sourceName(scene, 1)];
  const columns = [...grid.columns.keys()];
  const [firstVisible, lastVisible] = scene.visible(row);
  const tokens = [...grid.rows.keys()].filter((token) => token >= firstVisible && token < lastVisible);
  const rows = tokens.map((token): Piece => {
    const rect = span(grid, token, columns)!;
    const frames: Frame[] = [
      { at: 0, rect, opacity: 1, erased: 0 },
      { at: 0.45, rect, opacity: 1, erased: 0 },
      { at: 1, rect, opacity: 1, erased: 1 },
    ];
    return { ...strip(scene, values, token, columns, rect), frames };
  });
  const factors = tokens.flatMap((token): Piece[] => {
    const [first, last] = [cell(grid, token, columns[0]!)!, cell(grid, token, columns.at(-1)!)!];
    const shown = before?.site === weights ? cell(before, row, token) : null;
    const from = shown ?? scene.flow("attention", row, token);
    if (!from) return [];
    const frames: Frame[] = [
      { at: 0, rect: from, opacity: 1 },
      { at: 0.4, rect: beside(first), opacity: 1 },
      { at: 0.45, rect: beside(first), opacity: 1 },
      { at: 1, rect: last, opacity: 1 },
    ];
    return [{ ...single(scene, weights, row, token, first), frames }];
  });
  return [...rows, ...factors];
}

/** The weighted values fall into one row, one after the other. */
export function sumValues(scene: Scene): Piece[] {
  const { grid, row } = scene;
  const columns = [...grid.columns.keys()];
  const to = span(grid, row, columns);
  const [first, last] = scene.visible(row);
  const name = sourceName(scene, 0).replace(/weights$/, WEIGHED);
  if (!to) return [];
  const nearestFirst = [...grid.rows.keys()]
    .filter((token) => token >= first && token < last)
    .sort((one, other) => Math.abs(one - row) - Math.abs(other - row));
  return nearestFirst.map((token, i) => {
    const from = span(grid, token, columns)!;
    const leaves = (0.55 * i) / nearestFirst.length;
    return { ...strip(scene, name, token, columns, from), frames: into(from, to, leaves, leaves + 0.35) };
  });
}

/** The output of the head flies to the token's residual stream. */
export function write(scene: Scene): Piece[] {
  const { grid, row } = scene;
  const from = span(grid, row, [...grid.columns.keys()]);
  const to = scene.flow("add", row);
  const changed = change(scene);
  if (!from || !to) return changed;
  const leaves = { ...strip(scene, grid.site, row, [...grid.columns.keys()], from) };
  const frames: Frame[] = [
    { at: 0, rect: from, opacity: 0 },
    { at: 0.2, rect: from, opacity: 1 },
    { at: 0.9, rect: to, opacity: 1 },
    { at: 1, rect: to, opacity: 0 },
  ];
  return [...changed, { ...leaves, frames }];
}
