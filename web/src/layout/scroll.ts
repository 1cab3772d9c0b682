/** Scrolls a row of elements sideways, and nothing else, so that one of them is in the middle. Waits for the next
 * frame: scrolling earlier would lay out the page twice. */
export function scrollToMiddle(row: HTMLElement, element: Element | null | undefined): () => void {
  const frame = requestAnimationFrame(() => {
    if (!element) return;
    const [outer, inner] = [row.getBoundingClientRect(), element.getBoundingClientRect()];
    row.scrollLeft += inner.left + inner.width / 2 - (outer.left + outer.width / 2);
  });
  return () => cancelAnimationFrame(frame);
}
