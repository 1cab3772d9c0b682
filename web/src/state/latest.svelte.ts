/** The last value that was there: what is on its way leaves what is on screen where it is. */
export function latest<T>(value: () => T | undefined): { readonly current: T | undefined } {
  let kept: T | undefined;
  const current = $derived.by(() => (kept = value() ?? kept));
  return {
    get current() {
      return current;
    },
  };
}
