"""Streaming text: pieces concatenate to the full text, and no piece splits a character."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.text.text_stream import TextStream
from tests.text.small_tokenizers import BPE, BYTE, PIECES


@pytest.mark.parametrize("name", PIECES)
@given(text=st.text("ab é€🐔漢", max_size=20))
def test_streamed_byte_fallback_characters_concatenate_to_the_full_text(name: str, text: str) -> None:
    """Consecutive characters outside the vocabulary form one run of bytes that does not end between them."""
    ids = PIECES[name].encode(text)
    stream = TextStream(PIECES[name])
    assert "".join([*(stream.push(i) for i in ids), stream.close()]) == PIECES[name].decode(ids)
    stream = TextStream(PIECES[name], continues=True)
    spelled = b"".join(map(PIECES[name].spell, ids)).decode()
    assert "".join([*(stream.push(i) for i in ids), stream.close()]) == spelled


@given(
    ids=st.lists(
        st.integers(0, 256) | st.sampled_from([0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0x90, 0x94, 0xFF]), max_size=80
    )
)
@settings(max_examples=200)
def test_streamed_bytes_concatenate_to_the_full_text(ids: list[int]) -> None:
    stream = TextStream(BYTE)
    assert "".join([*(stream.push(i) for i in ids), stream.close()]) == BYTE.decode(ids)


@given(ids=st.lists(st.integers(0, 350), max_size=40))
def test_streamed_tokens_concatenate_to_the_full_text(ids: list[int]) -> None:
    stream = TextStream(BPE)
    assert "".join([*(stream.push(i) for i in ids), stream.close()]) == BPE.decode(ids)


def test_characters_are_streamed_as_soon_as_they_are_complete() -> None:
    stream = TextStream(BYTE)
    assert [stream.push(i) for i in BYTE.encode("a€🐔b")] == ["a", "", "", "€", "", "", "", "🐔", "b"]
    assert [stream.push(0xE2), stream.push(0x82), stream.close()] == ["", "", "\ufffd"]
    assert [stream.push(ord("c")), stream.close()] == ["c", ""]


def test_stream_buffer_stays_short_on_invalid_bytes() -> None:
    stream = TextStream(BYTE)
    pieces = [stream.push(0xFF) for _ in range(1000)]
    assert len(stream._ids) < 40
    assert "".join(pieces) + stream.close() == "\ufffd" * 1000
