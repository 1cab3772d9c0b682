/** Input that cannot be used: one line that says what was given and what was expected. The page translates errors
 * with a code. */
export class UserError extends Error {
  constructor(
    message: string,
    readonly code = "",
    readonly values: Record<string, string | number> = {},
  ) {
    super(message);
  }
}
