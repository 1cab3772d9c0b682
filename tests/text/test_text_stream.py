"""Text streamed: the pieces add up to the whole, and none breaks a character."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.text.text_stream import TextStream
from tests.text.small_tokenizers import BPE, BYTE, PIECES


@pytest.mark.parametrize("name", PIECES)
@given(text=st.text("ab é€🐔漢", max_size=20))
def test_a_stream_of_characters_in_bytes_adds_up_to_the_whole(name: str, text: str) -> None:
    """One after another, none of them in the vocabulary: the run of bytes between is never whole."""
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
def test_a_stream_of_any_bytes_adds_up_to_the_whole(ids: list[int]) -> None:
    stream = TextStream(BYTE)
    assert "".join([*(stream.push(i) for i in ids), stream.close()]) == BYTE.decode(ids)


@given(ids=st.lists(st.integers(0, 350), max_size=40))
def test_a_stream_of_any_tokens_adds_up_to_the_whole(ids: list[int]) -> None:
    stream = TextStream(BPE)
    assert "".join([*(stream.push(i) for i in ids), stream.close()]) == BPE.decode(ids)


def test_a_stream_never_breaks_a_character_and_never_waits_for_a_whole_one() -> None:
    stream = TextStream(BYTE)
    assert [stream.push(i) for i in BYTE.encode("a€🐔b")] == ["a", "", "", "€", "", "", "", "🐔", "b"]
    assert [stream.push(0xE2), stream.push(0x82), stream.close()] == ["", "", "\ufffd"]
    assert [stream.push(ord("c")), stream.close()] == ["c", ""]


def test_a_stream_of_garbage_stays_short() -> None:
    stream = TextStream(BYTE)
    pieces = [stream.push(0xFF) for _ in range(1000)]
    assert len(stream._ids) < 40
    assert "".join(pieces) + stream.close() == "\ufffd" * 1000
