/** Copies the page's address. Returns whether other computers can open it. */
export type CopyLink = () => Promise<boolean>;

export const NOTE_TIME = 5000; // milliseconds for which the page says that it is copied
