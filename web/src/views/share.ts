/** What the page shows, for others: as a link or as a file. */

import type { ViewName } from "../state/location";

export interface Share {
  copyLink: (() => Promise<void>) | undefined; // if the browser allows it
  isReachable: boolean; // whether other computers can open the address
  saveFile: (() => Promise<void>) | undefined; // if there is a server that writes it
  canSave: (view: ViewName) => boolean;
}

export const NOTE_TIME = 5000; // milliseconds for which a menu says what it has done

/** The views that only a server can show. */
const SERVER_VIEWS: readonly ViewName[] = ["learning", "labs", "training", "report"];

export function canSave(view: ViewName): boolean {
  return !SERVER_VIEWS.includes(view);
}

/** Whether other computers may be able to open an address on this host. */
export function isReachable(hostname: string): boolean {
  return !/^(|localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
}

/** The name of the file that holds a text. */
export function fileName(model: string, text: string): string {
  const words = text.trim().split(/\s+/).slice(0, 6).join("-");
  return `${`${model}-${words}`.replaceAll(/[^\p{L}\p{N}.]+/gu, "-").replaceAll(/^-+|[-.]+$/g, "")}.html`;
}
