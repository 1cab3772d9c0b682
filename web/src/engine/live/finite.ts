/** A number for JSON, which has no NaN or infinity. */
export function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
