"""Live pages on WebGPU, with the software adapter of Chromium: the residual stream equals Python's."""

import pytest
import torch

from clearhead.export.live_page import publish_live
from clearhead.language_model import LanguageModel
from clearhead.model.config import PRESETS, Config
from clearhead.model.transformer import Transformer
from clearhead.page.assets import has_bundles
from clearhead.text.tokenizer import Tokenizer
from tests.export.static_host import PATH, serving
from tests.export.test_live_page import LiveGuest, close
from tests.shapes import GEMMA2, OLMO2_WITH_YARN
from tools.live_page import ASK

# Sizes that are not multiples of the shaders' tiles, and a context of more than two of them.
SIZES = {"n_context": 150, "n_block": 3, "n_head": 4, "d_model": 72}
LLAMA = {
    **PRESETS["modern"],
    "n_kv_head": 2,
    "d_head": 22,
    "d_hidden": 150,
    "qk_norm": False,
    "qkv_bias": False,
    "rotary_base": 500_000.0,
    "rope_scaling": {
        "kind": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_context": 64,
    },
}
GEMMA = {
    **PRESETS["modern"],
    "feedforward": "geglu",
    "qk_norm": True,
    "post_norm": True,
    "d_head": 80,
    "n_kv_head": 1,
    "window": 20,
    "local_blocks": [0, 2],
    "local_rotary_base": 1000.0,
    "embedding_scale": 8.0,
}
KINDS = {
    "lecture": PRESETS["lecture"],
    "gpt2": PRESETS["gpt2"],
    "modern": PRESETS["modern"],
    "llama": LLAMA,
    "gemma": GEMMA,
    "neox": {
        **PRESETS["gpt2"],
        "parallel": True,
        "feedforward": "gelu_tanh",
        "position": "rotary",
        "rotary_dim": 8,
    },
    "olmo 2": {**OLMO2_WITH_YARN, "n_kv_head": 2},
    "gemma 2": {**GEMMA2, "n_kv_head": 2, "window": 20},
    "smollm3": {**PRESETS["modern"], "unrotated_blocks": [1]},
    "bidirectional": {**PRESETS["gpt2"], "causal": False, "feedforward": "gelu", "qk_norm": True},
}
TEXT = "The duck was too tired to swim, and it slept by the road. "
# Runs even a tiny model on the GPU that Chromium emulates.
FORCE_GPU = """
const Plain = Worker;
window.Worker = class extends Plain {
  postMessage(message) {
    super.postMessage("start" in message ? { ...message, gpu: { software: true, minParameters: 0 } } : message);
  }
};
"""
# Records the worker's devices, and how many numbers are copied to them.
WATCH = """() => {
  self.devices = new Set();
  self.copied = [];
  const { createCommandEncoder } = GPUDevice.prototype;
  GPUDevice.prototype.createCommandEncoder = function (...given) {
    self.devices.add(this);
    return createCommandEncoder.apply(this, given);
  };
  const { writeBuffer } = GPUQueue.prototype;
  GPUQueue.prototype.writeBuffer = function (buffer, offset, numbers) {
    self.copied.push(numbers.length);
    return writeBuffer.call(this, buffer, offset, numbers);
  };
}"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not has_bundles(), reason="the page is not built: run `pip install .` with npm installed"
    ),
]


class GpuGuest(LiveGuest):
    def open(self, query=""):
        super().open(query)
        self.page.workers[0].evaluate(WATCH)

    def ran_on_gpu(self, model, count):
        """Whether a text of this many tokens has run on the GPU since the page was opened."""
        return count * model.config.d_model in self.page.workers[0].evaluate("self.copied")

    def lose_devices(self):
        """Destroy the devices, and wait until the page has been notified."""
        self.page.workers[0].evaluate(
            """async () => {
              for (const device of self.devices) device.destroy();
              await Promise.all([...self.devices].map((device) => device.lost));
            }"""
        )

    def streams(self, model, ids):
        """The residual stream, wherever it can be read."""
        reads = [{"site": site} for site in sites(model.config)]
        status, arrays = self.ask("/api/sites", model=model.name, text=ids, reads=reads)
        assert status == 200
        return arrays


def sites(config):
    names = ["input", "output"] if config.parallel else ["input", "middle", "output"]
    return [f"block.{i}.{name}" for i in range(config.n_block) for name in names]


def expected(model, ids):
    trace = model.inspect(ids)
    return [trace[site].detach().numpy() for site in sites(model.config)]


def all_close(arrays, others):
    return all(close(array, other) for array, other in zip(arrays, others, strict=True))


@pytest.fixture(scope="module")
def named(story_text):
    tokenizer = Tokenizer.train("char", [story_text])

    def make(name, choices):
        torch.manual_seed(0)
        config = Config.from_json({**SIZES, "n_vocab": tokenizer.n_vocab, **choices})
        network = Transformer(config).eval()
        for parameter in network.parameters():
            parameter.data.add_(0.1 * torch.randn_like(parameter))
        return LanguageModel(network, tokenizer, name=name)

    return {name: make(name, choices) for name, choices in KINDS.items()}


@pytest.fixture(scope="module")
def host(named, tmp_path_factory):
    """The models as float32 at one address, and some of them as float16 and int8 at others."""
    root = tmp_path_factory.mktemp("host")
    folder = PATH.strip("/")
    publish_live(list(named.values()), root / folder, labs=False)
    for numbers in ("float16", "int8"):
        publish_live([named["llama"]], root / folder / numbers, numbers, labs=False)
    with serving(root) as host:
        yield host


@pytest.fixture(scope="module")
def gpu_browser(browser, host):
    from tools.browser import launch

    made = launch(browser.browser_type, "--enable-unsafe-webgpu")
    page = made.new_page()
    page.goto(f"{host.url}{PATH}")
    found = page.evaluate("async () => (await navigator.gpu?.requestAdapter())?.info?.architecture ?? null")
    if found is None:
        made.close()
        pytest.skip("this Chromium has no WebGPU adapter")
    yield made
    made.close()


@pytest.fixture(scope="module")
def come(browser, gpu_browser, host):
    made = []

    def open_page(query="", gpu=True, force=True):
        chosen = gpu_browser if gpu else browser
        context = chosen.new_context(locale="en-GB", reduced_motion="reduce", service_workers="block")
        context.add_init_script(ASK)
        if force:
            context.add_init_script(FORCE_GPU)
        guest = GpuGuest(context, host)
        guest.forgive("Service Worker registration blocked|No available adapters")
        made.append(guest)
        guest.open(query)
        return guest

    yield open_page
    left = [complaint for guest in made for complaint in guest.left()]
    for guest in made:
        guest.context.close()
    assert not left


@pytest.fixture(scope="module")
def guest(come):
    return come()


@pytest.mark.parametrize("name", KINDS)
def test_the_residual_stream_equals_python(guest, named, name):
    model = named[name]
    ids = model.tokenizer.encode(TEXT * 3)
    for count in (9, 64, 81, model.config.n_context):
        arrays = guest.streams(model, ids[-count:])
        assert guest.ran_on_gpu(model, count)
        for site, array, other in zip(
            sites(model.config), arrays, expected(model, ids[-count:]), strict=True
        ):
            assert close(array, other), (count, site)


def test_a_text_is_continued_from_the_keys_and_values_of_the_gpu(guest, named):
    model = named["llama"]
    ids = model.tokenizer.encode(TEXT * 2)[:70]
    guest.streams(model, ids[:67])
    arrays = guest.streams(model, ids)
    assert guest.ran_on_gpu(model, 67)
    assert not guest.ran_on_gpu(model, 70)
    assert all_close(arrays, expected(model, ids))


def test_the_text_that_an_edit_patches_from_also_runs_on_the_gpu(guest, named):
    model = named["modern"]
    text, other = TEXT[:40], TEXT[10:51]
    edits = [{"site": "block.1.input", "text": other, "at": [4]}]
    reads = [{"site": "logits"}]
    status, (logits,) = guest.ask("/api/sites", model="modern", text=text, edits=edits, reads=reads)
    assert status == 200
    assert guest.ran_on_gpu(model, len(text))
    assert guest.ran_on_gpu(model, len(other))
    patched = model.inspect(text)["block.1.input"].clone()
    patched[4] = model.inspect(other)["block.1.input"][4]
    assert close(logits, model.inspect(text).edit({"block.1.input": patched}).logits.detach().numpy())


@pytest.mark.parametrize("numbers", ["float16", "int8"])
def test_rounded_weights_give_the_same_numbers_in_webassembly_once_the_device_is_lost(come, named, numbers):
    guest, model = come(f"{numbers}/"), named["llama"]
    ids = model.tokenizer.encode(TEXT * 2)
    on_gpu = guest.streams(model, ids[:70])
    assert guest.ran_on_gpu(model, 70)
    guest.lose_devices()
    for other in range(4):  # push the text out of the cache
        guest.streams(model, ids[other + 1 : other + 60])
    assert all_close(guest.streams(model, ids[:70]), on_gpu)
    assert not guest.ran_on_gpu(model, 59)


def test_a_device_that_is_lost_during_a_run_is_replaced_by_webassembly(come, named):
    guest, model = come("?model=gpt2"), named["gpt2"]
    ids = model.tokenizer.encode(TEXT * 2)
    guest.page.workers[0].evaluate(
        """(count) => {
          const { submit } = GPUQueue.prototype;
          GPUQueue.prototype.submit = function (commands) {
            submit.call(this, commands);
            if (self.copied.includes(count)) for (const device of self.devices) device.destroy();
          };
        }""",
        90 * model.config.d_model,
    )
    assert all_close(guest.streams(model, ids[:90]), expected(model, ids[:90]))
    assert guest.ran_on_gpu(model, 90)
    assert all_close(guest.streams(model, ids[1:90]), expected(model, ids[1:90]))
    assert not guest.ran_on_gpu(model, 89)


def test_a_browser_without_an_adapter_uses_webassembly(come, named):
    guest, model = come("?model=modern", gpu=False), named["modern"]
    ids = model.tokenizer.encode(TEXT)
    assert all_close(guest.streams(model, ids), expected(model, ids))
    assert not guest.ran_on_gpu(model, len(ids))


def test_neither_a_software_adapter_nor_a_small_model_runs_on_webgpu(come, named):
    guest, model = come("?model=modern", force=False), named["modern"]
    ids = model.tokenizer.encode(TEXT)
    assert all_close(guest.streams(model, ids), expected(model, ids))
    assert not guest.ran_on_gpu(model, len(ids))
