"""Chat templates: output matches transformers, errors fit on one line, and limits cannot be bypassed."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from clearhead.errors import UserError
from clearhead.text.chat import LONGEST_MESSAGES, LONGEST_TEMPLATE, render
from clearhead.text.chat_renderer import fill

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA = """{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Today Date: " + strftime_now("%d %b %Y") + "\\n\\n" }}
{{- system_message + "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}
    {{- message.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
MISTRAL = """{{ bos_token }}{% for message in messages -%}
{% if message.role == 'system' %}{% continue %}{% endif %}
{% if message['role'] == 'user' %}[INST] {{ message['content'] }} [/INST]
{%- elif message['role'] == 'assistant' %}
{% generation %} {{ message['content'] }}{{ eos_token }}{% endgeneration %}
{%- else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}
{%- endfor %}"""
GEMMA = """{{ bos_token }}
{%- set ns = namespace(first=true, count=0) -%}
{%- for message in messages -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {%- if role == 'system' and not ns.first %}{{ raise_exception('System role not supported') }}{% endif -%}
    {{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
    {%- set ns.first = false %}{% set ns.count = ns.count + 1 -%}
{%- endfor -%}
{{ ns.count }}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}
"""
QWEN = """{%- if tools %}never{% endif %}
{%- macro turn(role, content) %}
    {{- '<|im_start|>' ~ role ~ '\\n' ~ content ~ '<|im_end|>\\n' }}
{%- endmacro %}
{%- set ns = namespace(last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- if message.role == 'user' and message.content is string %}
        {%- set ns.last = loop.index0 %}{% break %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
    {{- turn(message.role, content) }}
{%- endfor %}
{{- messages | tojson }}{{ messages[0] | tojson(indent=2) }}{{ dict(a=ns.last).items() | list }}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>' }}{% endif %}
{%- endif %}
"""
TEMPLATES = {"chatml": CHATML, "llama": LLAMA, "mistral": MISTRAL, "gemma": GEMMA, "qwen": QWEN}
CONVERSATIONS = {
    "one": [{"role": "user", "content": "Hi"}],
    "system": [
        {"role": "system", "content": "Be <b>brief</b> & kind.\n"},
        {"role": "user", "content": "  Why is the sky blue?\n\n"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nRayleigh."},
        {"role": "user", "content": "Und nachts? 🌙 \u2028 {{ 7 * 7 }} {% raw %} <|im_end|>"},
    ],
}


TRANSFORMERS = PreTrainedTokenizerFast(
    tokenizer_object=Tokenizer(WordLevel({"<s>": 0, "</s>": 1})), bos_token="<s>", eos_token="</s>"
)


def in_transformers(template, messages, add_generation_prompt=True):
    return TRANSFORMERS.apply_chat_template(
        messages, chat_template=template, tokenize=False, add_generation_prompt=add_generation_prompt
    )


@pytest.mark.parametrize("add_generation_prompt", [True, False])
@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("name", TEMPLATES)
def test_rendered_text_matches_transformers(name, conversation, add_generation_prompt):
    template, messages = TEMPLATES[name], CONVERSATIONS[conversation]
    ours = render(template, messages, bos="<s>", eos="</s>", add_generation_prompt=add_generation_prompt)
    assert ours == in_transformers(template, messages, add_generation_prompt)
    assert "Hi" in ours or "sky blue" in ours


def test_chatml_renders_the_expected_text():
    assert render(CHATML, [{"role": "user", "content": "Hi"}]) == (
        "<|im_start|>system\nYou are a helpful AI assistant<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


@given(
    st.sampled_from(sorted(TEMPLATES)),
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant"]), "content": st.text(max_size=30)}
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_arbitrary_content_matches_transformers(name, messages):
    values = {"messages": messages, "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True}
    assert fill(TEMPLATES[name], values) == {"text": in_transformers(TEMPLATES[name], messages)}


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}{% generation %}{{ loop.index }}{% endgeneration %}{% endfor %}",
        "{% set x = 0 %}{% generation %}\n  {% set x = 1 %}{{ x }}\n{% endgeneration %}\n{{ x }}",
        "  {% if true %}\n a\n  {% endif %}\n",
        "{{ namespace(self=1).self }}{{ unknown }}{{ tools is none }}{{ documents is none }}",
        "{{ '<é>' | tojson }}{{ 'é' | tojson(true) }}{{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}",
        "{{ [1, 2] | tojson(separators=(',', ':')) }}",
    ],
)
def test_template_edge_cases_match_transformers(template):
    messages = CONVERSATIONS["system"]
    assert render(template, messages) == in_transformers(template, messages)


def test_lone_surrogate_is_preserved():
    assert render("{{ messages[0].content }}", [{"role": "user", "content": "a\ud800b"}]) == "a\ud800b"


def test_long_messages_are_accepted():
    content = "🌙" * (LONGEST_MESSAGES - 10)
    assert render("{{ messages[0].content + '!' }}", [{"role": "user", "content": content}]) == content + "!"


def test_template_exception_becomes_a_one_line_error():
    template = "{{ raise_exception('No\x1b[31m system\nrole,   please.' ~ 'x' * 1000) }}"
    with pytest.raises(UserError) as caught:
        render(template, CONVERSATIONS["one"])
    text = str(caught.value)
    assert "rejects these messages: No [31m system role, please" in text
    assert text.isprintable()
    assert len(text) < 320


HOSTILE = {
    "attributes": ("{{ ''.__class__.__mro__ }}", "forbidden"),
    "globals": ("{{ cycler.__init__.__globals__.os.popen('id') }}", "forbidden"),
    "format": ("{{ '{0.__class__.__mro__}'.format('x') }}", "forbidden"),
    "mutation": ("{{ messages.append(1) }}", "forbidden"),
    "hidden names": ("{{ namespace(__html__=lipsum) | e }}", "forbidden"),
    "hidden name set": (
        "{% set n = namespace() %}{% set n.__html__ = lipsum %}{{ n | e }}",
        "forbidden",
    ),
    "range": ("{% for i in range(10**9) %}{% endfor %}", "Range too big"),
    "loops": ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "too long"),
    "macro tree": (
        "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "too long",
    ),
    "power": ("{{ 7 ** (10 ** 9) % 3 }}", "too long"),
    "lipsum": ("{{ lipsum(n=10**6) }}", "too long"),
    "long sum": ("{{ " + "1+" * 100_000 + "1 }}", "too long"),
    "recursion": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "too deeply"),
    "recursive loop": ("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "too deeply"),
    "brackets": ("{{ " + "(" * 50_000 + "1" + ")" * 50_000 + " }}", "too deeply"),
    "repetition": ("{{ 'a' * 10**9 }}", "too much memory"),
    "list": ("{{ [1] * 10**9 }}", "too much memory"),
    "center": ("{{ 'a' | center(10**9) }}", "too much memory"),
    "mapped filter": ("{{ ['a'] | map('center', 10**9) | list }}", "too much memory"),
    "method": ("{{ 'a'.ljust(10**9) }}", "too much memory"),
    "percent": ("{{ '%1000000000d' % 1 }}", "too much memory"),
    "format width": ("{{ '{:1000000000}'.format(1) }}", "too much memory"),
    "doubling": (
        "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "too much memory",
    ),
    "output": ("{% for i in range(99999) %}{{ '" + "a" * 1000 + "' }}{% endfor %}", "more than"),
    "include": ("{% include '/etc/passwd' %}", "no loader"),
    "import": ("{% import 'os' as os %}", "no loader"),
    "extends": ("{% extends 'x' %}", "no loader"),
    "syntax": ("{% if %}", "not valid, line 1"),
    "division": ("{{ 1 / 0 }}", "division by zero"),
    "length": ("a" * (LONGEST_TEMPLATE + 1), "expected at most"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.slow
def test_hostile_template_fails_quickly_with_a_one_line_error(name):
    template, words = HOSTILE[name]
    start = seconds_of_children()
    with pytest.raises(UserError) as caught:
        render(template, CONVERSATIONS["one"])
    assert seconds_of_children() - start < 30  # without a limit, it would never finish
    assert words in str(caught.value)
    assert str(caught.value).startswith("the chat template ")
    assert "\n" not in str(caught.value)


def seconds_of_children():
    """CPU time of child processes; wall time would depend on what else the machine is doing."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.mark.parametrize("template", ["{{ raise_exception.__globals__ }}", "{{ 'x' | attr('__class__') }}"])
def test_hidden_attributes_render_as_empty_text(template):
    assert render(template, CONVERSATIONS["one"]) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory")
def test_memory_is_bounded():
    code = (
        "import resource, sys\n"
        "from clearhead.text.chat import render\n"
        "for bomb in sys.argv[1:]:\n"
        "    try: render(bomb, [{'role': 'user', 'content': ''}])\n"
        "    except ValueError: pass\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    bombs = [template for template, words in HOSTILE.values() if words in ("too much memory", "more than")]
    done = subprocess.run([sys.executable, "-c", code, *bombs], capture_output=True, text=True, check=True)
    assert 50 < float(done.stdout) < 200  # megabytes


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ("Hi", "messages are a str"),
        ({"role": "user", "content": "Hi"}, "messages are a dict"),
        (None, "messages are a NoneType"),
        ([], "no messages"),
        (["Hi"], "message 0 has type str"),
        ([{"role": "user"}], "message 0 has no content"),
        ([{}], "message 0 has no content and no role"),
        ([{"role": "user", "content": "Hi", "tool": "x"}], "role, content, tool"),
        (
            [{"role": "user", "content": "Hi"}, {"role": "user", "content": None}],
            "message 1: its content has type NoneType",
        ),
        ([{"role": 1, "content": "Hi"}], "its role has type int"),
        ([{"role": "user", "content": "a" * (LONGEST_MESSAGES + 1)}], "remove some"),
    ],
)
def test_invalid_messages_are_rejected(messages, words):
    with pytest.raises(UserError, match=words):
        render(CHATML, messages)
