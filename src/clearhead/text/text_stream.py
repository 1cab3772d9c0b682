"""Streaming detokenization: the text that each id adds, never with half a character."""

from clearhead.text.tokenizer import Tokenizer


class TextStream:
    """Decodes ids to text, piece by piece, holding back what may be an incomplete character.

    All pieces, concatenated, equal `decode` of all ids (except for invalid UTF-8 with decoders that discard
    the whole run of bytes, as SentencePiece's byte fallback does). With `continues`, the ids continue a text:
    some decoders drop the space at the start of a text.
    """

    # An incomplete character has at most three bytes, shown as at most three U+FFFD.
    _HOLD = 3
    # Even for invalid bytes, this many tokens always cover the last three U+FFFD, each standing for up to three bytes.
    _KEEP = 16

    def __init__(self, tokenizer: Tokenizer, continues: bool = False) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._shown = 0  # characters of decode(ids) that were returned
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
        """The text that was held back."""
        piece = self._tokenizer.decode(self._ids)[self._shown :]
        self._ids, self._shown = [], 0
        return piece

    def _go_on(self) -> None:
        """Replace the ids already shown by the id of a single letter, since what follows is not the start of a text."""
        letter = self._tokenizer.letter
        self._ids = [] if letter is None else [letter]
        self._shown = len(self._tokenizer.decode(self._ids))
