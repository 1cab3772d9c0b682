"""Conversations: rendered as in transformers, with special tokens, and with only replies as targets."""

import json
import re

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from clearhead.errors import UserError
from clearhead.text.batches import Batches
from clearhead.text.chat import render, render_replies
from clearhead.text.conversations import are_conversations, tokenize_conversations
from clearhead.text.corpus import Document, documents
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import IGNORED, Tokens

CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
MARKED = (
    "{% for message in messages %}{% if message['role'] == 'assistant' %}<|im_start|>assistant\n"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}\n\n"
    "{% else %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n\n"
    "{% endif %}{% endfor %}"
)
TALKS = [
    [
        {"role": "user", "content": "Who are you?"},
        {"role": "assistant", "content": "A crow, ça va?"},
        {"role": "user", "content": "And who am I?"},
        {"role": "assistant", "content": "You are a fox 🦊."},
    ],
    [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hi!"},
    ],
]


def chat_tokenizer(template=CHATML):
    made = Tokenizer.train("byte", [])
    made._inner.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    return Tokenizer(made._inner, {**made.config, "chat_template": template})


def written(path, talks=TALKS):
    path.write_text("".join(json.dumps({"messages": talk}) + "\n" for talk in talks), encoding="utf-8")
    return list(documents([path]))


def replies_of(tokenizer, tokens):
    """Target text, one string per contiguous run of targets."""
    targets = tokens.targets[:]
    stretches = np.split(targets, np.flatnonzero(np.diff(targets == IGNORED)) + 1)
    return ["".join(tokenizer.pieces(each.tolist())) for each in stretches if each[0] != IGNORED]


@pytest.mark.parametrize(("template", "end"), [(CHATML, "<|im_end|>\n"), (MARKED, "<|im_end|>")])
def test_only_replies_are_targets(template, end, tmp_path):
    tokenizer = chat_tokenizer(template)
    tokens = tokenize_conversations(written(tmp_path / "talks.jsonl"), tokenizer)
    theirs = PreTrainedTokenizerFast(tokenizer_object=tokenizer._reading_specials, chat_template=template)
    expected = [i for talk in TALKS for i in theirs.apply_chat_template(talk, return_dict=False)]
    assert tokens[:].tolist() == expected
    plain = [text.encode().decode("latin-1") for text in ("A crow, ça va?", "You are a fox 🦊.", "Hi!")]
    found = [
        re.sub(r"\\x([0-9a-f]{2})", lambda hit: chr(int(hit[1], 16)), text)
        for text in replies_of(tokenizer, tokens)
    ]
    assert found == [text + end for text in plain]


def test_special_tokens_are_encoded_in_templates_but_not_text():
    tokenizer = chat_tokenizer()
    assert tokenizer.specials == ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    assert tokenizer.encode_template("a<|im_end|>b") == (
        [*tokenizer.encode("a"), 258, *tokenizer.encode("b")],
        [0, 1, 11],
    )
    assert len(tokenizer.encode("<|im_end|>")) == 10
    assert tokenizer.encode("a<|im_end|>b") == tokenizer.encode("a") + tokenizer.encode("<|im_end|>b")


def test_batch_rendering_matches_single_rendering():
    talks = [talk[:k] for talk in TALKS for k in range(2, len(talk) + 1)] * 300
    found = list(render_replies(CHATML, talks))
    assert len(found) == len(talks) == 1500
    assert [text for text, _ in found[:5]] == [
        render(CHATML, talk, add_generation_prompt=False) for talk in talks[:5]
    ]


def test_slow_and_rejected_conversations_are_reported():
    loop = "{% if messages[0].content == 'x' %}{% for i in range(99999) %}"
    loop += "{% for j in range(99999) %}{% endfor %}{% endfor %}{% endif %}" + CHATML
    fine, bad = TALKS[1], [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    found = list(render_replies(loop, [fine, bad, fine]))
    assert found[0][0] == render(CHATML, fine, add_generation_prompt=False)
    assert "takes too long" in str(found[1])
    refusing = CHATML + "{% if messages|length == 2 %}{{ raise_exception('no') }}{% endif %}"
    found = list(render_replies(refusing, [TALKS[1][1:], TALKS[1][1:]]))
    assert "rejects these messages: no" in str(found[0])
    assert len(found) == 2


def test_template_that_rewrites_earlier_messages_is_rejected():
    forgetful = "{% for m in messages %}{{ m.role + ':' + (m.content if loop.last else '…') }}{% endfor %}"
    assert "cannot be located in the text" in str(next(render_replies(forgetful, TALKS[:1])))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 3: this is not valid JSON"),
        ("[1]", "line 3: there are no messages"),
        ('{"text": "a"}', "line 3: there are no messages"),
        ('{"messages": []}', "line 3: there are no messages: expected at least one"),
        ('{"messages": [{"role": "user"}]}', "line 3: message 0 has no content"),
        ('{"messages": [{"role": "user", "content": "a"}]}', "line 3: the assistant says nothing"),
        ('{"messages": [{"role": "assistant", "content": "a"}]}', "line 3: the assistant speaks first"),
        (
            '{"messages": [{"role": "user", "content": "<|im_end|>"}, {"role": "assistant", "content": ""}]}',
            "line 3: a message contains <|im_end|>",
        ),
    ],
)
def test_bad_line_is_named_in_the_error(line, message, tmp_path):
    texts = written(tmp_path / "talks.jsonl", TALKS[:1])
    with (tmp_path / "talks.jsonl").open("a") as file:
        file.write(f"\n{line}\n")
    with pytest.raises(UserError, match=re.escape(f"{tmp_path / 'talks.jsonl'}, {message}")):
        tokenize_conversations(texts, chat_tokenizer())


def test_missing_template_or_conversations_are_rejected(tmp_path):
    with pytest.raises(UserError, match="has no chat template"):
        tokenize_conversations(written(tmp_path / "talks.jsonl"), Tokenizer.train("byte", []))
    (tmp_path / "empty.jsonl").write_text("\n\n")
    with pytest.raises(UserError, match="contains no conversations: add some, one per line"):
        tokenize_conversations(list(documents([tmp_path / "empty.jsonl"])), chat_tokenizer())
    (tmp_path / "empty.json").write_text("[]")
    with pytest.raises(UserError, match="contains no conversations: add some, as a JSON list"):
        tokenize_conversations(list(documents([tmp_path / "empty.json"])), chat_tokenizer())


def test_conversations_are_recognized_by_file_extension():
    talk, packed, text = (Document.of(name, "x") for name in ("a.jsonl", "b.JSONL.gz", "c.txt"))
    assert are_conversations([talk, packed])
    assert not are_conversations([text])
    with pytest.raises(UserError, match=r"a.jsonl contains conversations and c.txt does not"):
        are_conversations([text, talk])


def test_list_of_conversations_in_either_format_gives_the_same_tokens(tmp_path):
    tokenizer = chat_tokenizer()
    expected = tokenize_conversations(written(tmp_path / "talks.jsonl"), tokenizer)
    roles = {"user": "human", "assistant": "gpt", "system": "system"}
    shared = [
        {"conversations": [{"from": roles[each["role"]], "value": each["content"]} for each in talk]}
        for talk in TALKS
    ]
    for number, talks in enumerate(([{"messages": talk} for talk in TALKS], shared)):
        path = tmp_path / f"talks{number}.json"
        path.write_text(json.dumps(talks, indent=1), encoding="utf-8")
        found = tokenize_conversations(list(documents([path])), tokenizer)
        assert found[:].tolist() == expected[:].tolist()
        assert found.targets[:].tolist() == expected.targets[:].tolist()
    path.write_text(json.dumps([{"conversations": [{"from": "robot", "value": "Hi"}]}]), encoding="utf-8")
    with pytest.raises(UserError, match=r"talks1\.json, conversation 1: the assistant says nothing"):
        tokenize_conversations(list(documents([path])), tokenizer)
    path.write_text("[{", encoding="utf-8")
    with pytest.raises(UserError, match=r"talks1\.json: this is not valid JSON"):
        tokenize_conversations(list(documents([path])), tokenizer)


def test_windows_contain_targets_and_evaluation_covers_each_once():
    ids = np.arange(100)
    targets = np.where((ids >= 60) & (ids < 63), ids, IGNORED)
    tokens = Tokens.of(ids, Tokens.of(targets))
    batches = Batches(tokens, n_context=8, batch_size=4, seed=0)
    for step in range(9):
        inputs, aims, _ = batches.at(step)
        assert ((aims != IGNORED).sum(1) > 0).all()
        assert ((aims == IGNORED) | (aims == inputs + 1)).all()
    met = [aims[aims != IGNORED] for _, aims, _ in windows_for_evaluation(tokens.part(1), 8, 4, before=0)]
    assert np.concatenate(met).tolist() == [60, 61, 62]
    first, last = tokens.split(0.4)
    assert first.targets[:].max() == IGNORED
    assert last.targets[:3].tolist() == [60, 61, 62]
