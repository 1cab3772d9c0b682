"""The one kind of error that is the user's to mend."""


class UserError(ValueError):
    """What was given cannot be used. One line: what was given, what was expected, what to do."""
