"""What a factor of a formula may say, so that what it gives for a row depends on no other row.

Anything else that Python could compute from a column, its mean say, is refused by name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpmc.types import DpmcError, number

# Of each number by itself.
FUNCTIONS = (
    "I", "abs", "ceil", "cos", "exp", "exp2", "expm1", "floor", "log", "log10", "log1p", "log2",
    "sign", "sin", "sqrt", "tan", "tanh",
)  # fmt: skip
# What is done entry by entry, unlike a product of matrices, or a search for one entry in others.
OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr,
    ast.UAdd, ast.USub, ast.Invert, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip
# They learn something of a column: here of its public range.
LEARNING = "bs", "cc", "center", "cr", "cs", "poly", "scale", "standardize"
CATEGORY, CODINGS, OFFSET = "C", "contr", "offset"
LEVELS = f"{CATEGORY}(%s, levels=['first', 'second'])"
BACKTICKS = re.compile(r"`([^`]+)`")
Levels = tuple[Any, ...]


@dataclass
class Uses:
    """What factors read of a table.

    Parameters
    ----------
    numeric : list of str
        Columns that are read as numbers.
    learned : list of str
        Those of them of which a function wants to know more.
    levels : dict of str to tuple
        Columns that are read as categories, and their levels.
    """

    numeric: list[str] = field(default_factory=list)
    learned: list[str] = field(default_factory=list)
    levels: dict[str, Levels] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read, each once."""
        return tuple(dict.fromkeys((*self.numeric, *self.levels)))

    def column(self, name: str) -> None:
        """Read a factor that is a column by its name."""
        self.numeric.append(name)

    def expression(self, text: str) -> None:
        """Read a factor in Python.

        Raises
        ------
        DpmcError
            If it says what is not known to go row by row.
        """
        _Reader(self, text).read()


class _Reader:
    def __init__(self, uses: Uses, text: str) -> None:
        self.uses, self.text = uses, text
        self.quoted: dict[str, str] = {}

    def read(self) -> None:
        node = ast.parse(BACKTICKS.sub(self._placeholder, self.text), mode="eval").body
        if isinstance(node, ast.Call) and ast.unparse(node.func) == CATEGORY:
            self._category(node)
        else:
            self._number(node)

    def _placeholder(self, found: re.Match[str]) -> str:
        name = f"quoted_{len(self.quoted)}_"
        self.quoted[name] = found[1]
        return name

    def _number(self, node: ast.expr) -> None:
        """Numbers of rows: columns, numbers, arithmetic, comparisons and functions of them."""
        if isinstance(node, ast.Name):
            self.uses.column(self._name(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            pass
        elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self._number(child)
                elif not isinstance(child, OPERATORS):
                    raise self._refusal("arithmetic and comparisons", node)
        elif isinstance(node, ast.Call):
            self._call(node)
        else:
            raise self._refusal(
                "columns, numbers, arithmetic, comparisons and functions of them", node
            )

    def _call(self, node: ast.Call) -> None:
        function = ast.unparse(node.func)
        if function in LEARNING:
            self._learning(function, node)
        elif function == CATEGORY:
            raise self._refusal(f"{CATEGORY}() as a factor of its own", node)
        elif function == OFFSET:
            raise self._refusal(f"{OFFSET}() as a term of its own", node)
        elif function.removeprefix("np.") in FUNCTIONS and _has_one(node):
            self._number(node.args[0])
        else:
            raise self._refusal(
                f"functions of one number of a row ({', '.join(FUNCTIONS)}), as well as "
                f"{', '.join(LEARNING)} and {CATEGORY}",
                node,
            )

    def _learning(self, function: str, node: ast.Call) -> None:
        if not node.args or not isinstance(node.args[0], ast.Name):
            raise self._refusal(f"{function}() of a column by its name", node)
        for argument in (*node.args[1:], *(one.value for one in node.keywords)):
            self._constant(argument)
        name = self._name(node.args[0])
        self.uses.column(name)
        self.uses.learned.append(name)

    def _category(self, node: ast.Call) -> None:
        if not node.args or not isinstance(node.args[0], ast.Name):
            raise self._refusal(f"{CATEGORY}() of a column by its name", node)
        name, levels = self._name(node.args[0]), None
        for argument in node.args[1:]:
            self._coding(argument)
        for keyword in node.keywords:
            if keyword.arg == "levels":
                levels = self._constant(keyword.value)
            else:
                self._coding(keyword.value)
        if not isinstance(levels, list | tuple):
            raise DpmcError(
                f"`formula` must declare the levels of {name!r}, which would be private values "
                f"otherwise: {LEVELS % name}, the first being the one to compare with"
            )
        known = self.uses.levels.setdefault(
            name, checked_levels(f"`formula` must give {name!r}", levels)
        )
        if known != tuple(levels):
            raise DpmcError(f"`formula` must give {name!r} the same levels wherever it stands")

    def _coding(self, node: ast.expr) -> None:
        """Contrasts by their name, perhaps called with constants; or a constant."""
        if isinstance(node, ast.Call):
            for argument in (*node.args, *(one.value for one in node.keywords)):
                self._constant(argument)
            node = node.func
        if not (isinstance(node, ast.Attribute) and ast.unparse(node.value) == CODINGS):
            self._constant(node)

    def _constant(self, node: ast.expr) -> Any:
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise self._refusal("numbers and texts that are written out", node) from None

    def _name(self, node: ast.Name) -> str:
        return self.quoted.get(node.id, node.id)

    def _refusal(self, wanted: str, node: ast.expr) -> DpmcError:
        got = ast.unparse(node)
        for name, column in self.quoted.items():
            got = got.replace(name, f"`{column}`")
        return DpmcError(
            f"`formula` must hold only {wanted}: no row may have a say in another, got {got!r}"
        )


def _has_one(node: ast.Call) -> bool:
    """Whether a call has one argument: a second one of NumPy's is where the result goes."""
    return len(node.args) == 1 and not node.keywords


def checked_levels(told: str, levels: Sequence[Any]) -> Levels:
    """Levels of a category: different texts or numbers.

    Parameters
    ----------
    told : str
        Beginning of a refusal, up to what levels must be.
    levels : sequence
    """
    told = f"{told} at least two different texts or numbers as levels"
    levels = [one.item() if hasattr(one, "item") else one for one in levels]
    if len(levels) < 2 or not all(isinstance(one, str | int | float) for one in levels):
        raise DpmcError(f"{told}, got {list(levels)}")
    if len({key(one) for one in levels}) < len(levels):
        raise DpmcError(f"{told}, got {list(levels)}, of which two are the same")
    return tuple(levels)


def key(entry: object) -> float | bytes | None:
    """What two entries that are one level have in common, None for what is no level.

    The number that an entry is, or its text: a column is one of texts as soon as one row is no
    number, and the level of the others must not change with that.

    Examples
    --------
    >>> key("1") == key(1.0) == key(True), key("yes"), key(b"yes"), key(None)
    (True, b'yes', b'yes', None)
    """
    value = number(entry)
    if value == value:
        return value
    if isinstance(entry, str):
        return entry.encode("utf-8", "surrogatepass")
    return bytes(entry) if isinstance(entry, bytes) else None


def refuse_others(given: Mapping[str, Any], name: str, columns: Sequence[str]) -> None:
    """Refuse an argument that is no mapping of columns of a formula."""
    if not isinstance(given, Mapping):
        raise DpmcError(f"`{name}` must be a mapping by columns of the formula, got {given!r}")
    for column in given:
        if column not in columns:
            raise DpmcError(
                f"`{name}` must name columns of the formula ({', '.join(columns)}), got {column!r}"
            )
