"""Parameters and states in files: arrays and what contains them, nothing that runs."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np

from wengert.core.containers.tree_leaves import flatten, place_of, unflatten
from wengert.core.diagnostics.argument_checks import shown
from wengert.core.values.aval import is_number
from wengert.core.values.tensor import Tensor, raw
from wengert.creation import tensor
from wengert.errors import DtypeError, FileFormatError, UsageError, placed

CONTENT = "content"
"""The name of the entry that says what the leaves are and what contains them."""
KEYS = (str, int, float, bool)
"""The types of keys that dictionaries of a file have."""
DAMAGED = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    EOFError,
    RecursionError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading a damaged archive may raise."""


def save(file: str | os.PathLike[str] | BinaryIO, tree: Any) -> None:
    """Write containers of arrays to a file, which NumPy can read, too: an .npz archive without objects.

    Args:
        file: a path, which is written as given, or a binary file.
        tree: containers of arrays, Tensors, numbers and strings.

    Raises:
        DtypeError: a leaf is of another kind.
        UsageError: `file` is no path or file.
        OSError: it cannot be written.

    >>> import io
    >>> file = io.BytesIO()
    >>> save(file, {"w": np.ones(2), "step": 3})
    >>> _ = file.seek(0)
    >>> load(file)
    {'w': array([1., 1.]), 'step': 3}
    """
    require_file("save", file, "write")
    leaves, structure = flatten(tree)
    arrays: list[np.ndarray[Any, Any]] = []
    kept = []
    for index, leaf in enumerate(leaves):
        try:
            kept.append(encode_leaf(leaf, arrays))
        except DtypeError as error:
            raise error if structure is None else placed(error, place_of(tree, index, "tree")) from None
    content = {"leaves": kept, "layout": encode_layout(unflatten(structure, range(len(leaves))))}
    entries = {CONTENT: np.array(json.dumps(content)), **{str(i): array for i, array in enumerate(arrays)}}
    if not isinstance(file, str | os.PathLike):
        np.savez(file, **entries)  # type: ignore[arg-type]  # its stub has an option among the names
        return
    with open(file, "wb") as opened:  # given a path, NumPy would add a suffix
        np.savez(opened, **entries)  # type: ignore[arg-type]  # its stub has an option among the names


def require_file(name: str, file: Any, method: str) -> None:
    """Raise a UsageError unless something is a path or a file."""
    if not isinstance(file, str | os.PathLike) and not callable(getattr(file, method, None)):
        given = f"{shown(file)} for file"
        raise UsageError(f"optim.{name}", given, "a path or an open binary file is needed", "Pass one")


def encode_leaf(leaf: Any, arrays: list[np.ndarray[Any, Any]]) -> dict[str, Any]:
    """Return the JSON record of a leaf, and append its elements to the arrays."""
    if isinstance(leaf, str) or type(leaf) in (bool, int):
        return {"is": leaf}
    if not isinstance(leaf, Tensor | np.ndarray | np.generic) and not is_number(leaf):
        raise saving_error(f"a value of type {type(leaf).__name__}")
    array = np.asarray(raw(leaf) if type(leaf) is Tensor else leaf)
    if array.dtype.hasobject:
        raise saving_error("an array of objects")
    arrays.append(array)
    kind = "Tensor" if type(leaf) is Tensor else "array" if isinstance(leaf, np.ndarray | np.generic) else "number"
    return {kind: len(arrays) - 1}


def encode_layout(skeleton: Any) -> Any:
    """Return how containers are built, as JSON, given them around the numbers of their leaves."""
    if skeleton is None or type(skeleton) is int:
        return skeleton
    if isinstance(skeleton, dict) and all(type(key) in KEYS for key in skeleton):
        return {"dict": [[key, encode_layout(value)] for key, value in skeleton.items()]}
    if isinstance(skeleton, list):
        return {"list": [encode_layout(item) for item in skeleton]}
    parts = list(skeleton.values() if isinstance(skeleton, dict) else flatten(skeleton, lambda x: x is not skeleton)[0])
    return {"tuple": [encode_layout(part) for part in parts]}


def saving_error(given: str) -> DtypeError:
    """Return the error about what cannot be saved."""
    return DtypeError("optim.save", given, "arrays, numbers, strings and containers of them are needed", "Convert it")


def load(file: str | os.PathLike[str] | BinaryIO, like: Any = None) -> Any:
    """Read what `save` wrote; no code in a file runs.

    Args:
        file: a path or a binary file.
        like: containers of the same structure, which give the result their types: named tuples, dataclasses,
            registered classes, and dictionaries whose keys are neither strings nor numbers come as plain tuples
            without it. Shapes and dtypes must agree.

    Returns:
        The containers.

    Raises:
        FileFormatError: the file is damaged, or none of `save`.
        UsageError: what it holds does not fit into `like`, or `file` is no path or file.
        OSError: it cannot be read.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state"
    >>> save(path, (1.5, [np.arange(2)]))
    >>> load(path)
    (1.5, [array([0, 1])])
    """
    require_file("load", file, "read")
    try:
        with np.load(file, allow_pickle=False) as archive:
            content = json.loads(str(archive[CONTENT]))
            arrays = [archive[str(i)] for i in range(len(archive.files) - 1)]
        leaves = [decode_leaf(entry, arrays) for entry in content["leaves"]]
        return build_containers(content["layout"], leaves) if like is None else fit_leaves(leaves, like)
    except UsageError:
        raise
    except DAMAGED as error:
        given = f"a file that cannot be read ({type(error).__name__})"
        needed = "one that wengert.optim.save wrote is needed"
        raise FileFormatError("optim.load", given, needed, "Save it again") from error


def decode_leaf(entry: dict[str, Any], arrays: list[np.ndarray[Any, Any]]) -> Any:
    """Return a leaf that JSON tells of."""
    ((kind, value),) = entry.items()
    if kind == "is" and isinstance(value, str | int):
        return value
    array = arrays[value]
    if kind == "Tensor":
        return tensor(array)
    return array.item() if kind == "number" else array[()]


def build_containers(layout: Any, leaves: list[Any]) -> Any:
    """Return the containers that a layout describes."""
    if layout is None or isinstance(layout, int):
        return None if layout is None else leaves[layout]
    ((kind, content),) = layout.items()
    if kind == "dict":
        if not all(type(key) in KEYS for key, _ in content):
            raise TypeError("keys of other types")
        return {key: build_containers(value, leaves) for key, value in content}
    items = [build_containers(item, leaves) for item in content]
    return items if kind == "list" else tuple(items)


def fit_leaves(given: list[Any], like: Any) -> Any:
    """Return the leaves of a file in the containers of `like`."""
    wanted, structure = flatten(like)
    if len(given) != len(wanted):
        needed = f"{len(wanted)}, as many as `like` has, are needed"
        action = "Pass containers of the structure that was saved"
        raise UsageError("optim.load", f"a file with {len(given)} leaves", needed, action)
    for index, (one, other) in enumerate(zip(given, wanted, strict=True)):
        if np.shape(one) != np.shape(other) or np.asarray(raw(one)).dtype != np.asarray(raw(other)).dtype:
            error = UsageError(
                "optim.load",
                f"an array of shape {np.shape(one)} and dtype {np.asarray(raw(one)).dtype}",
                f"shape {np.shape(other)} and dtype {np.asarray(raw(other)).dtype} are needed, as in `like`",
                "Pass containers of the structure that was saved",
            )
            raise error if structure is None else placed(error, place_of(like, index, "like"))
    return unflatten(structure, given)
