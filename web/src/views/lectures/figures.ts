/** The figure of each stop. */

import type { Component } from "svelte";
import type { Messages } from "../../messages/en";
import type { Page } from "../../state/page.svelte";
import { FIGURES_000 } from "./figures000/figures";
import { FIGURES_001 } from "./figures001/figures";
import { FIGURES_002 } from "./figures002/figures";

export type LectureFigure = Component<{ page: Page; words: Messages }>;

/** The stops whose figures show the text on the page. */
export const SHOWS_TEXT: ReadonlySet<string> = new Set(["000.2", "000.6", "000.7", "000.8", "000.9"]);

export const FIGURES: Record<string, LectureFigure> = { ...FIGURES_000, ...FIGURES_001, ...FIGURES_002 };
