"""Parameters and states in files: arrays and what contains them, nothing that runs."""

from __future__ import annotations

import errno
import json
import os
import zipfile
from typing import Any, BinaryIO

import numpy as np

from wengert.core.containers.tree_leaves import flatten, place_of, unflatten
from wengert.core.diagnostics.argument_checks import as_whole, shown
from wengert.core.values.aval import is_number
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.creation import tensor
from wengert.errors import DtypeError, FileFormatError, GraphError, UsageError, WengertError, placed
from wengert.optim.rules import State
from wengert.primitives.sparse.sparse_tensor import SparseTensor, put_together
from wengert.primitives.sparse.storage_pattern import StoragePattern, known_pattern
from wengert.support.array_archives import DAMAGED, OtherArchiveError, read_arrays, write_arrays

KEYS = (str, int, float, bool)
"""The types of keys that dictionaries of a file have."""


def save(file: str | os.PathLike[str] | BinaryIO, tree: Any, *, keep: int = 1) -> None:
    """Write containers of arrays to a file, which NumPy can read, too: an .npz archive without objects.

    A file given by its path appears whole or not at all: it is written beside, made to last on the disk (`fsync`), and
    renamed. Whatever ends the program leaves the file that was there before. A digest covers all that `load`
    gives back; what else there is in a file, as the times of an archive's entries, may change.

    Args:
        file: a path, which is written as given, or a binary file.
        tree: containers of arrays, Tensors, numbers, strings and matrices of `scipy.sparse`. They come back as they
            are, Tensors with their `requires_grad`. Arrays of subclasses, as `numpy.memmap` and `numpy.recarray`, come
            back as plain ones, two places that hold one array as two arrays; for classes of containers see `load`.
        keep: how many files to keep, one by default: those before are called `file.1`, `file.2` and so on.

    Raises:
        DtypeError: a leaf is of another kind, or a masked array, a `numpy.matrix` or an array of objects.
        GraphError: a leaf is traced, or differs from lane to lane.
        UsageError: `file` is no path or file, or `keep` is no number of files.
        OSError: it cannot be written.

    >>> import io
    >>> file = io.BytesIO()
    >>> save(file, {"w": np.ones(2), "step": 3})
    >>> _ = file.seek(0)
    >>> load(file)
    {'w': array([1., 1.]), 'step': 3}
    """
    require_file("save", file, "write")
    count = as_whole("optim.save", "keep", keep, least=1)
    leaves, structure = flatten(tree)
    arrays: list[np.ndarray[Any, Any]] = []
    records = []
    for index, leaf in enumerate(leaves):
        try:
            records.append(encode_leaf(leaf, arrays))
        except WengertError as error:
            raise error if structure is None else placed(error, place_of(tree, index, "tree")) from None
    skeleton = unflatten(structure, range(len(leaves)))
    patterns = {index: encode_pattern(pattern, arrays) for index, pattern in patterns_in(skeleton).items()}
    text = json.dumps({"leaves": records, "layout": encode_layout(skeleton), "patterns": patterns})
    write_arrays(file, text, arrays, count)


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
    if not is_concrete(leaf):
        needed = "numbers are needed"
        action = "Return it, and save it outside of the function"
        raise GraphError("optim.save", "a Tensor that is traced, or differs from lane to lane", needed, action)
    array = np.asarray(raw(leaf) if type(leaf) is Tensor else leaf)
    if array.dtype.hasobject or isinstance(leaf, np.ma.MaskedArray | np.matrix):
        kind = "matrix" if isinstance(leaf, np.matrix) else "masked array"
        raise saving_error("an array of objects" if array.dtype.hasobject else f"a {kind}")
    arrays.append(array)
    return {kind_of_leaf(leaf): len(arrays) - 1}


def kind_of_leaf(leaf: Any) -> str:
    """Return the word for what a leaf comes back as."""
    if type(leaf) is Tensor:
        return "parameter" if leaf.requires_grad and leaf.is_leaf else "Tensor"
    if isinstance(leaf, np.ndarray):
        return "array" if leaf.ndim else "array without axes"
    return "array" if isinstance(leaf, np.generic) else "number"


def encode_layout(skeleton: Any) -> Any:
    """Return how containers are built, as JSON, given them around the numbers of their leaves."""
    if skeleton is None or type(skeleton) is int:
        return skeleton
    if isinstance(skeleton, dict) and all(type(key) in KEYS for key in skeleton):
        return {"dict": [[key, encode_layout(value)] for key, value in skeleton.items()]}
    if isinstance(skeleton, list):
        return {"list": [encode_layout(item) for item in skeleton]}
    if type(skeleton) is SparseTensor:
        return skeleton.data  # the number of its leaf, which has a pattern
    if type(skeleton) is State:
        return {"State": [skeleton.step, encode_layout(skeleton.memory)]}
    parts = list(skeleton.values() if isinstance(skeleton, dict) else flatten(skeleton, lambda x: x is not skeleton)[0])
    return {"tuple": [encode_layout(part) for part in parts]}


def patterns_in(tree: Any) -> dict[int, StoragePattern]:
    """Return where the elements of sparse matrices in containers stand, by the numbers of the leaves that they are."""
    leaves, structure = flatten(tree)
    parts = flatten(unflatten(structure, range(len(leaves))), lambda x: type(x) is SparseTensor)[0]
    return {part.data: part._pattern for part in parts if type(part) is SparseTensor}


def encode_pattern(pattern: StoragePattern, arrays: list[np.ndarray[Any, Any]]) -> list[Any]:
    """Return the JSON record of where the elements of a sparse matrix stand, and append its index arrays."""
    *own, indices = pattern.values()
    arrays += indices
    return [*own, list(range(len(arrays) - len(indices), len(arrays)))]


def decode_pattern(record: list[Any], arrays: list[np.ndarray[Any, Any]]) -> StoragePattern:
    """Return where the elements of a sparse matrix stand; raise if that is not a matrix."""
    format, is_array, shape, data_shape, numbers = record
    parts = format, is_array, tuple(shape), tuple(data_shape), tuple([arrays[i] for i in numbers])
    StoragePattern(*parts).check()
    return known_pattern(*parts)


def saving_error(given: str) -> DtypeError:
    """Return the error about what cannot be saved."""
    return DtypeError("optim.save", given, "arrays, numbers, strings and containers of them are needed", "Convert it")


def load(file: str | os.PathLike[str] | BinaryIO, like: Any = None) -> Any:
    """Read what `save` wrote; no code in a file runs.

    Args:
        file: a path or a binary file.
        like: containers of the same structure, which give the result their types; its sparse matrices have to store
            elements at the same places. Without it named tuples,
            dataclasses and registered classes of yours, whose code would have to run, and dictionaries whose keys are
            neither strings nor numbers come as plain tuples; parameters in lists, tuples and dictionaries, and the
            states of update rules, need none. Shapes and dtypes must agree.

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
    return load_leaves(file, like)


def load_leaves(file: str | os.PathLike[str] | BinaryIO, like: Any = None, *, same_dtypes: bool = True) -> Any:
    """Return what `load` does; dtypes need not agree with those in `like` if that is said."""
    require_file("load", file, "read")
    try:
        text, arrays = read_arrays(file)
        content = json.loads(text)
        leaves = [decode_leaf(entry, arrays) for entry in content["leaves"]]
        patterns = {int(i): decode_pattern(record, arrays) for i, record in content["patterns"].items()}
        if like is not None:
            return fit_leaves(leaves, patterns, like, same_dtypes)
        for index, pattern in patterns.items():
            leaves[index] = put_together(pattern, (leaves[index],))
        return build_containers(content["layout"], leaves)
    except (UsageError, FileFormatError):
        raise
    except OSError as error:
        if error.errno != errno.EINVAL:  # which a place before the beginning is
            raise
        raise damage_error(file, error) from error
    except OtherArchiveError as error:
        needed = "one that wengert.optim.save wrote is needed"
        action = "Read it with numpy.load, or what wrote it"
        raise FileFormatError("optim.load", f"an archive with {error}", needed, action) from None
    except DAMAGED as error:
        raise damage_error(file, error) from error


def damage_error(file: Any, error: Exception) -> FileFormatError:
    """Return the error about a file that is damaged, and what is left of those before it."""
    is_archive = not isinstance(error, zipfile.BadZipFile)
    given = f"a file that cannot be read ({type(error).__name__})" if is_archive else "a file that is no whole archive"
    older = f"{os.fspath(file)}.1" if isinstance(file, str | os.PathLike) else ""
    action = f"Load {older}, which was saved before it" if os.path.exists(older) else "Save it again"
    return FileFormatError("optim.load", given, "one that wengert.optim.save wrote is needed", action)


def decode_leaf(entry: dict[str, Any], arrays: list[np.ndarray[Any, Any]]) -> Any:
    """Return a leaf that JSON tells of."""
    ((kind, value),) = entry.items()
    if kind == "is" and isinstance(value, str | int):
        return value
    array = arrays[value]
    if kind in ("Tensor", "parameter"):
        return tensor(array, requires_grad=kind == "parameter")
    if kind == "array without axes":
        return array
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
    if kind == "State":
        step, memory = content
        return State(leaves[step], build_containers(memory, leaves))
    items = [build_containers(item, leaves) for item in content]
    return items if kind == "list" else tuple(items)


def fit_leaves(given: list[Any], patterns: dict[int, StoragePattern], like: Any, same_dtypes: bool) -> Any:
    """Return the leaves of a file in the containers of `like`."""
    wanted, structure = flatten(like)
    if len(given) != len(wanted):
        needed = f"{len(wanted)}, as many as `like` has, are needed"
        action = "Pass containers of the structure that was saved"
        raise UsageError("optim.load", f"a file with {len(given)} leaves", needed, action)
    for index, (one, other) in enumerate(zip(given, wanted, strict=True)):
        has_dtype = not same_dtypes or np.asarray(raw(one)).dtype == np.asarray(raw(other)).dtype
        if np.shape(one) != np.shape(other) or not has_dtype:
            error = UsageError(
                "optim.load",
                f"an array of shape {np.shape(one)} and dtype {np.asarray(raw(one)).dtype}",
                f"shape {np.shape(other)} and dtype {np.asarray(raw(other)).dtype} are needed, as in `like`",
                "Pass containers of the structure that was saved",
            )
            raise error if structure is None else placed(error, place_of(like, index, "like"))
    own = patterns_in(like)
    for index in sorted({*own, *patterns}):
        if not is_same_place(patterns.get(index), own.get(index)):
            sorts = [describe_pattern(found.get(index)) for found in (patterns, own)]
            needed = f"{sorts[1]} is needed, as in `like`{', with the same places' if sorts[0] == sorts[1] else ''}"
            action = "Load it without `like`, or pass what was saved"
            raise placed(UsageError("optim.load", sorts[0], needed, action), place_of(like, index, "like"))
    return unflatten(structure, given)


def is_same_place(a: StoragePattern | None, b: StoragePattern | None) -> bool:
    """Tell whether the elements of two leaves stand at the same places, by indices of whatever dtype."""
    if a is None or b is None:
        return a is b
    *first, indices = a.values()
    *second, others = b.values()
    return first == second and all(map(np.array_equal, indices, others))


def describe_pattern(pattern: StoragePattern | None) -> str:
    """Return what a leaf is."""
    if pattern is None:
        return "an array"
    kind, shape = "array" if pattern.is_array else "matrix", " x ".join(map(str, pattern.shape))
    return f"a sparse {pattern.format} {kind} of {shape} with {pattern.size} stored elements"
