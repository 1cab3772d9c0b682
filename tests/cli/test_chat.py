"""`clearhead chat`: input, replies and saved conversations."""

import io
import json
import sys

import pytest

from clearhead.language_model import load

# Short enough that a few turns fit into the small model's context.
TEMPLATE = "{% for m in messages %}{{ m.content }} {% endfor %}{% if add_generation_prompt %}A {% endif %}"


@pytest.fixture
def talker(copied_model):
    (copied_model / "clearhead.json").unlink()  # it has a hash of the file changed here
    path = copied_model / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": TEMPLATE}))
    return copied_model


@pytest.fixture
def typing(monkeypatch):
    return lambda *lines: monkeypatch.setattr(
        sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines))
    )


def test_conversation_is_answered_and_saved(talker, typing, clearhead, tmp_path):
    typing("The cat", "", "/save talk.jsonl", "/reset", "The cat", "/save talk.jsonl", "/quit", "never read")
    result = clearhead("chat", talker, "--tokens", 5, "--device", "cpu")
    assert result.code == 0, result.err
    lines = [json.loads(line)["messages"] for line in (tmp_path / "talk.jsonl").read_text().splitlines()]
    assert [message["role"] for message in lines[0]] == ["user", "assistant"]
    assert lines[0] == lines[1]  # what was said before /reset has no effect
    model = load(talker, "cpu")
    ids = model.chat_ids([{"role": "user", "content": "The cat"}])
    reply = model.generate(ids, tokens=5, temperature=0.7, top_p=0.9, seed=0)
    assert lines[0][1]["content"] == reply
    assert result.out == f"{reply}\n" * 2


def read(path):
    return [json.loads(line)["messages"] for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def chat(talker, typing, clearhead):
    """Type these lines into a chat and return what it writes to standard error."""

    def call(*lines):
        typing(*lines)
        result = clearhead("chat", talker, "--tokens", 3, "--device", "cpu")
        assert result.code == 0, result.err
        return result.err

    return call


def test_continued_conversation_keeps_its_line(chat, tmp_path):
    said = chat("The cat", "/save talk.jsonl", "The dog", "/save talk.jsonl", "/save ./talk.jsonl")
    (talk,) = read(tmp_path / "talk.jsonl")
    assert [message["content"] for message in talk[::2]] == ["The cat", "The dog"]
    assert "2 messages saved to talk.jsonl, as line 1" in said
    assert "4 messages saved to talk.jsonl, as line 1" in said


def test_new_conversation_gets_its_own_line(chat, tmp_path):
    chat("The cat", "/save talk.jsonl", "/reset", "The dog", "/save talk.jsonl", "A", "/save talk.jsonl")
    chat("The cat", "/save talk.jsonl", "B", "/save talk.jsonl")
    talks = read(tmp_path / "talk.jsonl")
    assert [[message["content"] for message in talk[::2]] for talk in talks] == [
        ["The cat"],
        ["The dog", "A"],
        ["The cat", "B"],  # from another session, though it began with the same words
    ]


def test_existing_lines_are_preserved(chat, tmp_path):
    path, other = tmp_path / "talk.jsonl", '{"messages": [{"role": "user", "content": "Else"}]}'
    path.write_text(other)  # without a trailing newline
    chat("The cat", "/save talk.jsonl", "The dog", "/save talk.jsonl")
    assert path.read_text().splitlines()[0] == other
    assert len(read(path)) == 2


@pytest.mark.parametrize(
    ("there", "why"),
    [
        (b"Dear diary\n", "line 1: this is not valid JSON"),
        (
            b'{"messages": [{"role": "user", "content": "Hi"}]}\n{"text": 1}\n',
            "line 2: there are no messages",
        ),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
    ],
    ids=["text", "other JSON", "bytes"],
)
def test_files_in_another_format_are_left_unchanged(chat, tmp_path, there, why):
    path = tmp_path / "diary.jsonl"
    path.write_bytes(there)
    said = chat("The cat", "/save diary.jsonl")
    assert path.read_bytes() == there
    (line,) = [line for line in said.splitlines() if "diary.jsonl" in line]
    assert why in line
    assert "choose another name" in line


@pytest.mark.parametrize("lines", [(), ("The cat", "/reset")], ids=["at first", "after /reset"])
def test_empty_conversation_is_not_saved(chat, tmp_path, lines):
    assert "there is nothing to save yet" in chat(*lines, "/save talk.jsonl")
    assert not (tmp_path / "talk.jsonl").exists()


def test_file_names_are_parsed_as_in_a_shell(chat, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    (tmp_path / "me").mkdir()
    said = chat("The cat", "/save ~/a.jsonl", '/save "my talk.jsonl"', "/save 'b.jsonl'", "/save notes.txt")
    assert [len(read(tmp_path / name)) for name in ("me/a.jsonl", "my talk.jsonl", "b.jsonl")] == [1, 1, 1]
    assert not (tmp_path / "notes.txt").exists()
    assert len(read(tmp_path / "notes.txt.jsonl")) == 1
    assert "saved to notes.txt.jsonl, as line 1 (.jsonl was added" in said


@pytest.mark.parametrize(
    ("name", "why"),
    [(".", "is a folder"), ("~nobody-here/a", "home"), ("a\0b", "null"), ("n" * 300, "too long")],
)
def test_invalid_file_name_is_reported(chat, name, why, tmp_path):
    said = chat("The cat", f"/save {name}")
    assert why in said
    assert "choose another name" in said
    assert {path.name for path in tmp_path.iterdir()} == {"model"}


def test_saving_through_a_symlink_keeps_the_symlink(chat, tmp_path):
    (tmp_path / "talk.jsonl").symlink_to("real.jsonl")
    chat("The cat", "/save talk.jsonl")
    assert (tmp_path / "talk.jsonl").is_symlink()
    assert len(read(tmp_path / "real.jsonl")) == 1


def test_full_disk_preserves_the_existing_file(chat, disk):
    path = disk("16k") / "talk.jsonl"
    before = json.dumps({"messages": [{"role": "user", "content": "x" * 9000}]}) + "\n"
    path.write_text(before)
    assert "No space left" in chat("The cat", f"/save {path}")
    assert path.read_text() == before
    assert [each.name for each in path.parent.iterdir()] == ["talk.jsonl"]


@pytest.mark.parametrize(
    ("option", "value"),
    [("--temperature", "nan"), ("--top-p", "2"), ("--repetition-penalty", "0"), ("--seed", "-1")],
)
def test_invalid_settings_are_rejected_at_startup(talker, refused, typing, option, value):
    typing("The cat")
    refused("chat", talker, option, value, words=[f"{option} {value}", "expected"])


def test_chat_continues_after_errors(talker, typing, clearhead):
    typing("The cat", "/save nowhere/talk.jsonl", "/what", "The dog " * 40, "The cat")
    result = clearhead("chat", talker, "--tokens", 3, "--device", "cpu")
    assert result.code == 0, result.err
    assert "nowhere/talk.jsonl cannot be written" in result.err
    assert result.err.count("/reset starts over") == 2  # at startup and for /what
    assert "/reset to start over" in result.err
    assert len(result.out.splitlines()) >= 1


def test_model_without_a_chat_template_continues_the_text(model_folder, typing, clearhead, tmp_path):
    typing("The cat", "Once", "/save talk")
    result = clearhead("chat", model_folder, "--tokens", 5, "--device", "cpu")
    assert result.code == 0, result.err
    assert "has no chat template: it continues the conversation as plain text" in result.err
    ((_, first, _, second),) = read(tmp_path / "talk.jsonl")
    model = load(model_folder, "cpu")
    sampling = {"tokens": 5, "temperature": 0.7, "top_p": 0.9, "seed": 0}
    assert first["content"] == model.generate("The cat", **sampling)
    assert second["content"] == model.generate(f"The cat{first['content']}\nOnce", **sampling)


def test_model_without_a_chat_template_can_be_rejected(model_folder, clearhead):
    result = clearhead("chat", model_folder, "--no-plain-chat")
    assert result.code == 2
    assert "has no chat template" in result.err
    assert "use clearhead generate" in result.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--token", "short"), "the token is too weak"),
        (("--token", "x" * 20, "--no-token"), "--token and --no-token"),
        (("--no-token", "--host", "0.0.0.0"), "a token is required"),
    ],
)
def test_serve_rejects_weak_or_missing_tokens(options, said, model_folder, clearhead):
    result = clearhead("serve", model_folder, "--port", 0, *options)
    assert result.code == 2
    assert said in result.err
