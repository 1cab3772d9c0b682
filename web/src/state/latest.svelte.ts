/** The last defined value: keeps the current numbers on screen while new ones load. */
export function latest<T>(value: () => T | undefined): { readonly current: T | undefined } {
  let last: T | undefined;
  const current = $derived.by(() => (last = value() ?? last));
  return {
    get current() {
      return current;
    },
  };
}
