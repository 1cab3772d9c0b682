import type { Attachment } from "svelte/attachments";

/** Reports the inner size of an element after each layout that changes it. Unlike Svelte's bindings, this does not lay
 * out the page at once when the element is created. */
export function observeSize(onsize: (width: number, height: number) => void): Attachment<HTMLElement> {
  return (element) => {
    let frame = 0;
    const observer = new ResizeObserver(() => {
      cancelAnimationFrame(frame);
      // Wait for the next frame: resizing an observed element at once is reported as an error.
      frame = requestAnimationFrame(() => onsize(element.clientWidth, element.clientHeight));
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame);
    };
  };
}
