"""Keeps products of tensor cores that a thread has asked for until the lanes of its warp meet.

To meet costs more than to multiply a tile. Products need nothing of each other but their sums, so
the lanes meet once for all of them: before their sums are read, before memory that they may read
is written, and at the end of the basic block. Their operands wait in the lane buffer, those of
several products once. Sums stay there from batch to batch while their registers are not written.
Matrices that ldmatrix loads are part of a batch, too, and its products find them in the buffer.
"""

from collections.abc import Mapping, Sequence

from harness.ptxcpu.codegen.operands import MatrixProduct
from harness.ptxcpu.ptx.effects import COMPUTED, registers_of
from harness.ptxcpu.ptx.syntax import Instruction, Operand, Register
from harness.ptxcpu.runtime.layout import LANE_BUFFER_WORDS, LOADS

_Names = tuple[str, ...]


class ProductBatch:
    """The products of one batch, and which words of a lane's buffer hold their operands.

    Sums lie from the first word on, operands from the last one down.
    """

    def __init__(self) -> None:
        self.products: list[tuple[int, ...]] = []
        """Their numbers, and those of loads, as struct Product has them (runtime/tensor.cu)."""
        self._loaded: dict[str, int] = {}
        """The registers that loads of this batch write, and the words in which they lie."""
        self._sums: dict[_Names, tuple[int, tuple[Operand, ...]]] = {}
        self._operands: dict[_Names, int] = {}
        self._published: dict[str, int] = {}
        """Registers of which a word still has the value."""
        self._next_sum, self._last_operand = 0, LANE_BUFFER_WORDS

    def allows(self, item: Instruction) -> bool:
        """Return whether an instruction may run before the products are finished."""
        if item.guard is not None:
            return False
        root = item.opcode.split(".")[0]
        if root in ("mma", "wgmma"):  # `can_add` knows about the products
            return True
        may_delay = root in COMPUTED or root == "ldmatrix"
        may_delay |= root == "ld" and ".volatile" not in item.opcode
        return may_delay and not any(map(self._is_pending, registers_of(item)))

    def has_room(self, to: Sequence[Operand]) -> bool:
        """Return whether there is room for the matrices that a load writes to these registers."""
        return self._next_sum + _words(to) <= self._last_operand

    def add_load(self, index: int, variant: int, to: Sequence[Operand]) -> int:
        """Add a load. Return the first of the words that receive the matrices; the first two bring
        the address."""
        self._last_operand -= _words(to)
        for i, item in enumerate(to):
            if isinstance(item, Register):
                self.forget(item.name)
                self._loaded[item.name] = self._last_operand + i
        self.products.append((index, variant, self._last_operand, self._last_operand, 0, LOADS))
        return self._last_operand

    def can_add(self, product: MatrixProduct) -> bool:
        """Return whether a product needs no sum of this batch but its own, and has room."""
        for operand in product.operands:
            is_pending = any(map(self._is_pending, _names(operand)))
            if is_pending and self._loaded_word(_names(operand)) is None:
                return False
        names, start = _names(product.sums), _names(product.start)
        if not (names == start and names in self._sums) and any(
            map(self._is_pending, names + start)
        ):
            return False
        room = 0 if self._word_of(product) is not None else len(names)
        room += sum(map(_words, product.operands))
        return self._next_sum + room <= self._last_operand

    def place_sums(self, product: MatrixProduct) -> tuple[int, bool]:
        """Return where a product's sums lie, and whether what they begin with is there already."""
        word = self._word_of(product)
        is_there = word is not None
        if word is None:
            word = self._next_sum
            self._next_sum += len(product.sums)
        self._sums[_names(product.sums)] = word, product.sums
        return word, is_there

    def _word_of(self, product: MatrixProduct) -> int | None:
        """Return where what a product adds to lies already, if its sums can replace it there."""
        names = _names(product.sums)
        if names != _names(product.start):
            return None
        if names in self._sums:
            return self._sums[names][0]
        return _first_word(self._published, names)

    def _loaded_word(self, names: _Names) -> int | None:
        """Return where matrices that this batch loads lie one after the other."""
        return _first_word(self._loaded, names)

    def place_operand(self, operand: Sequence[Operand]) -> tuple[int, bool]:
        """Return where an operand lies, and whether it is there already."""
        names = _names(operand)
        known = self._operands.get(names, self._loaded_word(names))
        if known is not None:
            return known, True
        self._last_operand -= _words(operand)
        if all(isinstance(item, Register) for item in operand):
            self._operands[names] = self._last_operand
        return self._last_operand, False

    def add(self, index: int, product: MatrixProduct, sums: int, places: Sequence[int]) -> None:
        a, b, *uses_start = places
        self.products.append((index, product.variant, sums, a, b, *(uses_start or [-1])))

    def finish(self) -> tuple[list[tuple[int, tuple[Operand, ...]]], dict[str, int]]:
        """End the batch. Return where the sums of registers lie, and what was loaded."""
        sums, loaded = list(self._sums.values()), self._loaded
        self.products, self._sums, self._operands, self._loaded = [], {}, {}, {}
        self._last_operand = LANE_BUFFER_WORDS
        return sums, loaded

    def note_published(self, sums: Sequence[tuple[int, tuple[Operand, ...]]]) -> None:
        """Remember that registers hold what these words do."""
        for word, items in sums:
            self._published |= {name: word + i for i, name in enumerate(_names(items))}

    def forget(self, name: str) -> None:
        """Take note that a register was written."""
        self._published.pop(name, None)
        self._operands = {names: at for names, at in self._operands.items() if name not in names}

    def forget_published(self) -> None:
        """Let the words of finished sums be used for other things."""
        self._published, self._next_sum = {}, 0

    def _is_pending(self, name: str) -> bool:
        return name in self._loaded or any(name in names for names in self._sums)


def _first_word(words: Mapping[str, int], names: _Names) -> int | None:
    """Return the word of the first register if the others lie in the words after it."""
    first = words.get(names[0])
    if first is None or any(words.get(name) != first + i for i, name in enumerate(names)):
        return None
    return first


def _names(operand: Sequence[Operand]) -> _Names:
    """Return the names of registers, and the text of other operands."""
    return tuple(item.name if isinstance(item, Register) else str(item) for item in operand)


def _words(operand: Sequence[Operand]) -> int:
    """Return the most words that an operand takes: one register may be a descriptor of two."""
    return max(2, len(operand))
