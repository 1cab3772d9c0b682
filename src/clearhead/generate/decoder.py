"""The decoder: what may come next in many texts at once, each number by its own text alone.

A text's numbers must not depend on what else is in the batch, to the last bit. So a prompt is read by itself,
in pieces of a fixed size; and a step has one row a slot, whatever is in the slots, where a word is compared
with its own text's past alone. On a processor a step may also be narrower, of the slots in use and some
padding: there matrix products mostly give a row the same numbers whatever their width. Whether they do, and
whether they treat all rows alike, is tried out at the start; a width for which it does not hold is not used.

Shapes: B rows of a step, C features of the stream, V words.
"""

from __future__ import annotations

import copy
import platform
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.model.cache import Cache, Slots
from clearhead.model.sight import Sight, spans
from clearhead.model.transformer import Transformer

# Words of a prompt that are read between two steps: on a processor they take as long as a step of as many
# rows, on other devices hardly longer than a step.
PIECE, WIDE_PIECE = 32, 512
TRIED = 16  # times that a block is run to see whether all rows of a step are treated alike


class Reading:
    """A text that is read by itself, a piece at a time; `logits` (V) are of the word after it, once read."""

    def __init__(self, network: Transformer, ids: Sequence[int], size: int) -> None:
        parameter = network.embedding.weight
        self.network, self.size = network, size
        self.ids = torch.tensor([ids], device=parameter.device)
        self.cache = Cache(network.config, 1, len(ids), parameter.device, parameter.dtype)
        self.logits: Tensor | None = None

    @torch.inference_mode()
    def read_on(self) -> int:
        """Read the next piece, if one is left; how many words it had."""
        if self.logits is not None:
            return 0
        piece = self.ids[:, self.cache.length : self.cache.length + self.size]
        final = self.network.read(piece, cache=self.cache)
        if self.cache.length == self.ids.shape[1]:
            self.logits = self.network.unembedding(final[0, -1:])[0].float().cpu()
        return piece.shape[1]


class Decoder:
    """A network and its slots. Where `whole`, as it is off the processor, a step is always of all slots."""

    def __init__(self, network: Transformer, slots: int, whole: bool | None = None) -> None:
        config, weight = network.config, network.embedding.weight
        if not config.causal:
            raise UserError("this model sees both ways: it fills in blanks and cannot write on")
        if slots < 1:
            raise UserError(f"slots = {slots}: expected at least 1")
        self.network = turned(network) if _packs_anew(weight) else network
        self.piece = PIECE if weight.device.type == "cpu" else WIDE_PIECE
        self.slots = Slots(config, slots, weight.device, weight.dtype)
        # Of every position. Sines of many numbers at once may differ from those of few in their last bit.
        everywhere = torch.arange(config.n_context, device=weight.device)[:, None]
        with torch.inference_mode():
            self.places = network.position_vectors(everywhere)
            self.sights = network.sights(everywhere)
        self.whole = weight.device.type != "cpu" if whole is None else whole
        self.widths = [slots]
        self.widths = self._widths_alike()

    def read(self, ids: Sequence[int]) -> Reading:
        """Begin to read a text; one longer than the context counts by its end."""
        return Reading(self.network, ids[-self.network.config.n_context :], self.piece)

    def step(self, slots: Sequence[int], ids: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Read the next word of the text in each of these slots, given in order: B V logits, in memory.

        A text whose slot is left out may be lost.
        """
        if self.whole:
            # A slot that is not in use has a row too; what it writes there, the next text writes over.
            words = dict(zip(slots, zip(ids, positions, strict=True), strict=True))
            count = self.slots.count
            ids, positions = zip(*(words.get(slot, (0, 0)) for slot in range(count)), strict=True)
            return self._step(range(count), ids, positions, count)[list(slots)].float().cpu()
        width = next(width for width in self.widths if width >= min(len(slots), self.widths[-1]))
        parts = [slice(i, i + width) for i in range(0, len(slots), width)]
        logits = torch.cat([self._step(slots[part], ids[part], positions[part], width) for part in parts])
        return logits.float().cpu()

    @torch.inference_mode()
    def _step(self, slots: Sequence[int], ids: Sequence[int], positions: Sequence[int], width: int) -> Tensor:
        network, device = self.network, self.slots.room.device
        padding = [0] * (width - len(slots))
        places = torch.tensor([*positions, *padding], device=device)
        x = network.token_vectors(torch.tensor([*ids, *padding], device=device)[:, None])
        if self.places is not None:
            x = x + self.places[places]
        self.slots.aim(slots, positions)
        sights = self._sights(slots, positions, places)
        for i, block in enumerate(network.blocks):
            x = block(x, sights[i in network.config.local_blocks], self.slots.blocks[i])
        return network.unembedding(network.final_norm(x))[: len(slots), 0]

    def _sights(self, slots: Sequence[int], positions: Sequence[int], places: Tensor) -> dict[bool, Sight]:
        """What the step's rows see: in local blocks (True) and in the others (False), where there are any."""
        config, seen = self.network.config, {}
        for i, sight in enumerate(self.sights):
            local = i in config.local_blocks
            if local not in seen:
                window = config.window if local else None
                turned = sight.rotation and (sight.rotation[0][places], sight.rotation[1][places])
                found = spans(slots, positions, self.slots.room, window, self.whole)
                seen[local] = Sight(turned, spans=found)
        return seen

    def _widths_alike(self) -> list[int]:
        """The widths whose rows all get the same numbers, those that they get in the full width.

        Tried with the same text in every row. Where not even the full width's rows agree, each row is a
        step of its own.
        """
        full = self.slots.count
        expected = self._same_rows(full)
        if expected is None:
            self.whole = False
            return [1]
        if self.whole:
            return [full]
        halves = [2**i for i in range(1, full.bit_length()) if 2**i < full]
        found = [self._same_rows(width) for width in halves]
        alike = [w for w, row in zip(halves, found, strict=True) if row is not None and row.equal(expected)]
        return [*alike, full]

    def _same_rows(self, width: int) -> Tensor | None:
        """What each row of this width makes of the same few words, or None if they differ."""
        config, rows = self.network.config, list(range(width))
        count = min(config.n_context, -(-TRIED // config.n_block))
        tables = []
        for position in range(count):
            for slot in rows:
                self.slots.extend(slot, position)
            word = position * config.n_vocab // count
            tables.append(self._step(rows, [word] * width, [position] * width, width))
        table = torch.stack(tables, dim=1)
        return table[0] if table.equal(table[:1].expand_as(table)) else None


def turned(network: Transformer) -> Transformer:
    """The same network, but with a copy of its matrices that lies in memory column by column."""
    shared = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
    other = copy.deepcopy(network, shared)
    for module in other.modules():
        if isinstance(module, nn.Linear):
            weight = module.weight.detach().t().contiguous().t()
            module.weight = nn.Parameter(weight, requires_grad=False)
    return other


def _packs_anew(weight: Tensor) -> bool:
    """Whether products with a narrow batch mostly rearrange the matrix, which goes faster by columns."""
    arm = platform.system() == "Linux" and platform.machine() == "aarch64"
    return arm and weight.device.type == "cpu" and weight.dtype == torch.float32
