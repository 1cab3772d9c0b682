"""Clients other than OpenAI's own, in a separate environment: LangChain, LiteLLM and llm call tools and read text."""

import json
import os
import subprocess
import sys
import venv
from importlib.util import find_spec

import pytest

from tests.serving import make_model, make_registry, running
from tests.text.tool_templates import WITH_TOOLS

pytestmark = pytest.mark.slow

LIBRARIES = ["langchain-openai==1.7.3", "litellm==1.83.0", "llm==0.36"]

LANGCHAIN = """
import json, sys
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field

url, token = sys.argv[1:]

class Pick(BaseModel):
    "A digit."
    digit: int = Field(ge=0, le=9)

@tool
def set_mode(loud: bool) -> str:
    "Set it."
    return "done"

found = []
for responses in (False, True):
    model = ChatOpenAI(model="small", base_url=url, api_key=token, max_tokens=200, use_responses_api=responses)
    assert sum(len(str(chunk.content)) for chunk in model.stream("Hello")) > 0
    bound = model.bind_tools([set_mode], tool_choice="set_mode", strict=True)
    reply = bound.invoke("Loud!")
    (call,) = reply.tool_calls
    result = ToolMessage("done", tool_call_id=call["id"])
    after = model.bind_tools([set_mode]).invoke([HumanMessage("Loud!"), reply, result])
    streamed = None
    for chunk in bound.stream("Loud!"):
        streamed = chunk if streamed is None else streamed + chunk
    (again,) = streamed.tool_calls
    for each in (call, again):
        assert (each["name"], list(each["args"]), type(each["args"]["loud"])) == ("set_mode", ["loud"], bool)
    for method in ("json_schema", "function_calling"):
        assert model.with_structured_output(Pick, method=method).invoke("A digit?").digit in range(10)
    found.append(after.usage_metadata["input_tokens"] - reply.usage_metadata["input_tokens"])
vectors = OpenAIEmbeddings(model="small", base_url=url, api_key=token, check_embedding_ctx_length=False)
print(json.dumps([found, len(vectors.embed_query("a"))]))
"""

LITELLM = """
import json, sys
import litellm

url, token = sys.argv[1:]
asked = {"model": "openai/small", "api_base": url, "api_key": token}
messages = [{"role": "user", "content": "The time?"}]
tools = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]
forced = {"tools": tools, "tool_choice": "required", "max_tokens": 200}
replies = [litellm.completion(messages=messages, **asked, **forced)]
chunks = list(litellm.completion(messages=messages, stream=True, **asked, **forced))
replies.append(litellm.stream_chunk_builder(chunks))
for reply in replies:
    (call,) = reply.choices[0].message.tool_calls
    assert (call.function.name, call.function.arguments) == ("now", "{}")
    assert reply.choices[0].finish_reason == "tool_calls"
assert litellm.completion(messages=messages, max_tokens=9, **asked).usage.completion_tokens <= 9
assert litellm.responses(input="Hi", max_output_tokens=9, **asked).status in ("completed", "incomplete")
print(json.dumps(len(litellm.embedding(input=["a"], **asked).data[0]["embedding"])))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """An interpreter with the libraries, in an environment that has nothing else."""
    if find_spec("pip") is None:
        pytest.skip("the clients are not installed, and neither is pip")
    folder = tmp_path_factory.mktemp("clients")
    venv.create(folder)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--retries", "1", "--timeout", "30"]
    try:
        done = subprocess.run(
            [*pip, "install", "-q", *LIBRARIES], capture_output=True, text=True, timeout=900
        )
    except subprocess.TimeoutExpired:
        pytest.skip("the clients could not be installed within fifteen minutes")
    if done.returncode != 0:
        pytest.skip(f"the clients cannot be downloaded: {done.stderr.strip().splitlines()[-1]}")
    return python


@pytest.fixture(scope="module")
def server():
    registry = make_registry(small=make_model(template=WITH_TOOLS["tags"], n_context=1024))
    with running(registry) as made:
        yield made
    registry.close(cancel=True)


def run(python, server, *arguments, **environment):
    settings = {"NO_PROXY": "*", "LITELLM_LOCAL_MODEL_COST_MAP": "True", **environment}
    done = subprocess.run(
        [python, *arguments], capture_output=True, text=True, timeout=300, env={**os.environ, **settings}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    ("program", "expected"), [(LANGCHAIN, None), (LITELLM, 16)], ids=["langchain", "litellm"]
)
def test_a_library_calls_tools_and_reads_text(python, server, program, expected):
    written = run(python, server, "-c", program, f"{server.url}/v1", server.credentials.token)
    found = json.loads(written.splitlines()[-1])
    if expected is None:
        longer, width = found
        assert min(longer) > 100  # bytes: the call and its result are part of the prompt
        assert width == 16
    else:
        assert found == expected


def test_llm_reads_text_and_json(python, server, tmp_path):
    model = {
        "model_id": "ours",
        "model_name": "small",
        "api_base": f"{server.url}/v1",
        "api_key_name": "ours",
    }
    settings = {**model, "supports_tools": True, "supports_schema": True}
    (tmp_path / "extra-openai-models.yaml").write_text(json.dumps([settings]))
    (tmp_path / "keys.json").write_text(json.dumps({"ours": server.credentials.token}))

    def ask(*arguments):
        return run(python, server, "-m", "llm", "-m", "ours", "Hi", *arguments, LLM_USER_PATH=str(tmp_path))

    assert ask("-o", "max_tokens", "20").strip()
    assert ask("-o", "max_tokens", "20", "--no-stream").strip()
    assert ask("-o", "max_tokens", "20", "-T", "llm_version").strip()
    schema = json.dumps(
        {
            "type": "object",
            "properties": {"a": {"enum": [1]}},
            "required": ["a"],
            "additionalProperties": False,
        }
    )
    assert json.loads(ask("--schema", schema)) == {"a": 1}
