/** Whom numbers are written for. All that is shown follows when it changes. */
export const reader = $state({ language: "en" });
