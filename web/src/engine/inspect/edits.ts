/** Edits: values that replace what the model computes at a site. */

import { Matrix } from "../../model/matrix";
import type { Config, Edit } from "../types";
import { UserError } from "../userError";
import { range, takeRows } from "../model/tensor";
import { checkIndices } from "./indexing";
import { type Site, isSameSite, isVectorSite, parseSite, siteName } from "./sites";

/** A trace that edits can patch from. */
export interface PatchSource {
  readonly length: number;
  read(name: string): Matrix;
}

/** Numbers with a shape: one row of numbers, or several rows of equal length. */
interface ShapedValues {
  values: Float32Array;
  shape: number[];
}

/** A replacement value: a number, a tensor, a factor of the current value, or a trace to patch from.
 *
 * `at` selects positions; `columns` selects features or, in the matrices of a head, key positions. Each defaults to
 * all. A tensor must have all columns even if `columns` selects only a few.
 */
export interface SiteEdit {
  site: Site;
  value: number | ShapedValues | { scale: number } | { source: PatchSource };
  at: readonly number[] | null;
  columns: readonly number[] | null;
}

/** Active edits, in the order in which they were made. */
export class Edits {
  constructor(readonly made: readonly SiteEdit[] = []) {}

  /** Reads the edits of a request. `sources` returns the trace of a text to patch from. */
  static parse(requests: readonly Edit[], config: Config, sources: (text: string) => PatchSource): Edits {
    return new Edits(requests.map((request) => parseEdit(request, config, sources)));
  }

  concat(other: Edits): Edits {
    return new Edits([...this.made, ...other.made]);
  }

  /** The edits inside a block or, for null, those outside the blocks. */
  of(block: number | null): Edits {
    return new Edits(this.made.filter(({ site }) => site.block === block));
  }

  touch(...sites: readonly Site[]): boolean {
    return this.made.some(({ site }) => sites.some((other) => isSameSite(site, other)));
  }

  /** Whether an edit is at a site of this name, in any block or head. */
  touchName(...names: readonly string[]): boolean {
    return this.made.some(({ site }) => names.includes(site.name));
  }

  /** The first block that must be recomputed. */
  firstBlock(nBlock: number): number {
    const firsts = this.made.map(({ site }) => {
      if (site.block !== null) return site.block;
      return site.name === "embedding" || site.name === "position" ? 0 : nBlock;
    });
    return Math.min(nBlock, ...firsts);
  }

  /** Applies these edits to the value of a site: T × …. */
  apply(site: Site, x: Matrix): Matrix {
    return this.made.reduce((value, edit) => (isSameSite(edit.site, site) ? put(edit, value) : value), x);
  }
}

export function parseEdit(request: Edit, config: Config, sources: (text: string) => PatchSource): SiteEdit {
  const site = parseSite(request.site, config);
  const { value, scale, text } = request;
  const given = [value, scale, text].filter((each) => each !== null && each !== undefined);
  if (given.length !== 1)
    throw new UserError(`edit of ${request.site}: expected exactly one of value, scale and text`);
  const places = { site, at: request.at ?? null, columns: request.columns ?? null };
  if (text != null) return { ...places, value: { source: sources(text) } };
  if (scale != null) return { ...places, value: { scale } };
  return { ...places, value: typeof value === "number" ? value : makeTensor(value!, request.site) };
}

function makeTensor(value: number[] | number[][], site: string): ShapedValues {
  const rows = value.filter((row) => Array.isArray(row));
  if (rows.length === 0) return { values: Float32Array.from(value as number[]), shape: [value.length] };
  const width = rows[0]!.length;
  if (rows.length < value.length || rows.some((row) => row.length !== width))
    throw new UserError(`edit of ${site}: expected rows of equal length`);
  return { values: Float32Array.from(rows.flat()), shape: [rows.length, width] };
}

/** Writes the value of an edit into a copy. */
function put(edit: SiteEdit, x: Matrix): Matrix {
  const at = edit.at ? checkIndices(edit.at, x.rows, "position") : range(x.rows);
  const value = valueAt(edit, takeRows(x, at), edit.at ? at : null);
  const changed = new Matrix(x.values.slice(), x.rows, x.columns);
  const columns = chosenColumns(edit, x);
  at.forEach((row, i) => {
    const [target, source] = [changed.row(row), value.row(i)];
    if (!columns) target.set(source);
    else for (const column of columns) target[column] = source[column]!;
  });
  return changed;
}

function chosenColumns({ site, columns }: SiteEdit, x: Matrix): number[] | null {
  if (!columns) return null;
  if (isVectorSite(site)) {
    const reason = "columns cannot be selected because the site has one number per position";
    throw new UserError(`${siteName(site)}: ${reason}`);
  }
  return checkIndices(columns, x.columns, "column");
}

/** The new value of the selected positions, of the same shape as the current one. */
function valueAt({ site, value }: SiteEdit, current: Matrix, at: number[] | null): Matrix {
  const { rows, columns, values } = current;
  if (typeof value === "number")
    return new Matrix(
      values.map(() => value),
      rows,
      columns,
    );
  if ("scale" in value) {
    const factor = Math.fround(value.scale);
    return new Matrix(
      values.map((number) => number * factor),
      rows,
      columns,
    );
  }
  const expected = isVectorSite(site) ? [rows] : [rows, columns];
  if ("source" in value) {
    const patch = fromTrace(value.source, site, at);
    checkShape(site, isVectorSite(site) ? [patch.rows] : [patch.rows, patch.columns], expected);
    return patch;
  }
  const isOneRow = isVectorSite(site) && value.shape.length === 2 && value.shape[0] === 1;
  checkShape(site, isOneRow ? value.shape.slice(1) : value.shape, expected);
  return new Matrix(value.values, rows, columns);
}

function checkShape(site: Site, shape: readonly number[], expected: readonly number[]): void {
  if (shape.join() === expected.join()) return;
  const message = `${siteName(site)}: the value is ${shape.join("×")}, expected ${expected.join("×")}`;
  throw new UserError(message, "edit_does_not_fit", { site: siteName(site) });
}

/** The value of the other trace, at the selected positions if there are any. */
function fromTrace(source: PatchSource, site: Site, at: number[] | null): Matrix {
  if (!at) return source.read(siteName(site));
  const largest = Math.max(...at);
  if (largest >= source.length) {
    const name = siteName(site);
    const message = `${name}: the other trace has positions 0 to ${source.length - 1}, not ${largest}`;
    throw new UserError(message, "edit_does_not_fit", { site: name });
  }
  return takeRows(source.read(siteName(site)), at);
}
