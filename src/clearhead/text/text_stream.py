"""A stream of text: what ids add to it, one after another, and never half a character."""

from clearhead.text.tokenizer import Tokenizer


class TextStream:
    """Ids to text, piece by piece, holding back what may still be an unfinished character.

    All pieces together are `decode` of all ids. (Not so for broken UTF-8 in a decoder that then discards
    the whole run of bytes, as SentencePiece's byte fallback does.) With `continues` they go on from a text:
    some decoders drop the space of whatever comes first.
    """

    # An unfinished character has at most three bytes, shown as at most three U+FFFD.
    _HOLD = 3
    # Where the bytes are garbage, this many tokens surely hold the three last U+FFFD, of three bytes each.
    _KEEP = 16

    def __init__(self, tokenizer: Tokenizer, continues: bool = False) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._shown = 0  # characters of decode(ids) that were handed out
        if continues:
            self._go_on()

    def push(self, i: int) -> str:
        """The text that this id completes."""
        if not self._tokenizer.has_text(i):
            return ""
        self._ids.append(i)
        text = self._tokenizer.decode(self._ids)
        held = min(len(text) - len(text.rstrip("\ufffd")), self._HOLD)
        piece = text[self._shown : len(text) - held]
        self._shown += len(piece)
        if held == 0:
            self._go_on()
        elif len(self._ids) >= 2 * self._KEEP:
            self._ids = self._ids[-self._KEEP :]
            self._shown = len(self._tokenizer.decode(self._ids)) - held
        return piece

    def close(self) -> str:
        """What was held back."""
        piece = self._tokenizer.decode(self._ids)[self._shown :]
        self._ids, self._shown = [], 0
        return piece

    def _go_on(self) -> None:
        """Forget what was shown, but for a letter in its place: what comes next is not the first of all."""
        letter = self._tokenizer.letter
        self._ids = [] if letter is None else [letter]
        self._shown = len(self._tokenizer.decode(self._ids))
