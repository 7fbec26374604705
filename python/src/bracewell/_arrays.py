# SPDX-License-Identifier: MIT
"""Arrays of any library: what they are made by, and where their work is queued."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any, Callable, Optional, Sequence

import numpy

Array = Any  # numpy.ndarray, torch.Tensor, cupy.ndarray, jax.Array, or anything else with __dlpack__

_KINDS = {
    ("real", False): "float32",
    ("real", True): "float64",
    ("complex", False): "complex64",
    ("complex", True): "complex128",
}


@lru_cache(maxsize=None)
def _library(type_: Any) -> str:
    return type_.__module__.partition(".")[0]


def library(array: Array) -> str:
    """The name of the library whose array this is: numpy, torch, cupy, jaxlib, ..."""
    kind: Any = type(array)
    return _library(kind)


@lru_cache(maxsize=None)
def _is_double(dtype: Any) -> bool:
    return str(dtype).rpartition(".")[2] in ("float64", "complex128")


def is_double(array: Array) -> bool:
    return _is_double(getattr(array, "dtype", ""))


def is_complex(array: Array) -> bool:
    return "complex" in str(array.dtype)


def shape_of(function: str, name: str, array: Array) -> tuple[int, ...]:
    """The shape of an array.

    Raises:
        TypeError: where it is none.
    """
    try:
        return tuple(array.shape)
    except AttributeError:
        raise TypeError(f"bracewell.{function}: {name}: expected an array, found {type(array).__name__}") from None


def real(name: str, value: Any) -> float:
    """A real number.

    Raises:
        TypeError: where it is something else.
    """
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"bracewell: {name}: expected a number, found {brief(value)}") from None


def number(name: str, value: Any) -> Any:
    """A real number, or None where none is given.

    Raises:
        TypeError: where it is something else.
    """
    return None if value is None else real(name, value)


def reals(name: str, values: Any) -> list[float]:
    """Real numbers.

    Raises:
        TypeError: where it is something else.
    """
    return [real(name, value) for value in each("", name, values, "numbers")]


def each(function: str, name: str, values: Any, kind: str) -> tuple:
    """What a sequence has.

    Raises:
        TypeError: where it is none.
    """
    try:
        return tuple(values)
    except TypeError:
        function = f"bracewell.{function}" if function else "bracewell"
        raise TypeError(f"{function}: {name}: expected {kind}, found {brief(values)}") from None


def whole(name: str, value: Any, *, default: Optional[int] = None, least: int = -2**31, most: int = 2**31 - 1) -> int:
    """A whole number, in place of None the default.

    Raises:
        TypeError: where it is something else.
        ValueError: where it is less than `least` or more than `most`.
    """
    try:
        found = operator.index(default if value is None and default is not None else value)
    except TypeError:
        raise TypeError(f"bracewell: {name}: expected a whole number, found {brief(value)}") from None
    if not least <= found <= most:
        raise ValueError(f"bracewell: {name}: expected at {f'least {least}' if found < least else f'most {most}'}, found {found}")
    return found


def flag(name: str, value: Any) -> bool:
    """True or False.

    Raises:
        TypeError: where it is an array of several.
    """
    try:
        return bool(value)
    except (TypeError, ValueError):
        raise TypeError(f"bracewell: {name}: expected True or False, found {brief(value)}") from None


def wholes(name: str, values: Any) -> tuple[int, ...]:
    """Whole numbers, sizes for instance.

    Raises:
        TypeError: where it is something else.
    """
    return tuple(whole(name, value) for value in each("", name, values, "whole numbers"))


def word(function: str, name: str, value: Any, *expected: str) -> str:
    """A word, one of those where any are named.

    Raises:
        TypeError: where it is something else.
        ValueError: where it is another word.
    """
    function = f"bracewell.{function}" if function else "bracewell"
    if not isinstance(value, str):
        raise TypeError(f"{function}: {name}: expected a word, found {brief(value)}")
    if expected and value not in expected:
        raise ValueError(f"{function}: {name}: expected {' or '.join(expected)}, found {value}")
    return value


def words(function: str, name: str, values: Any, *expected: str) -> tuple[str, ...]:
    """Some of the words that are expected.

    Raises:
        TypeError: where they are something else.
        ValueError: where one is another word.
    """
    of = f"{', '.join(expected[:-1])} and {expected[-1]}"
    values = each(function, name, values, f"some of {of}")
    for value in values:
        if not isinstance(value, str) or value not in expected:
            raise ValueError(f"bracewell.{function}: {name}: expected {of}, found {value if isinstance(value, str) else brief(value)}")
    return values


def as_real(array: Array, like: Optional[Array] = None) -> Array:
    """Integers, bools and halves of every library, and NumPy's real numbers of the other byte order, as real numbers that
    operators take, of the precision of `like`; other arrays as they are."""
    wide = like is not None and is_double(like)
    if library(array) == "numpy":
        kind, size = array.dtype.kind, array.dtype.itemsize
        if kind not in "iub" and not (kind == "f" and (size < 4 or (size < 16 and not array.dtype.isnative))):
            return array
        wide = wide or (like is None and kind == "f" and size == 8)
    elif not str(getattr(array, "dtype", "")).rpartition(".")[2].startswith(("int", "uint", "bool", "float16", "bfloat16")):
        return array
    return as_like(array, array, "float64" if wide else "float32")


def as_complex(array: Array) -> Array:
    """Real numbers as complex ones of their precision; other arrays as they are."""
    kind = str(getattr(array, "dtype", "")).rpartition(".")[2]
    if not kind.startswith(("int", "uint", "bool", "float", "bfloat")) or kind == "float128":
        return array
    return as_like(as_real(array), array, "complex128" if is_double(array) else "complex64")


def expect_shape(function: str, name: str, array: Array, *expected: Any) -> tuple[int, ...]:
    """The shape of an array whose last axes are these, behind one more or none; words stand for any extent.

    Raises:
        ValueError: where it has another.
    """
    shape = shape_of(function, name, array)
    inner = shape[len(shape) - len(expected):]
    if not 0 <= len(shape) - len(expected) <= 1 or any(want not in (found, str(want)) for want, found in zip(expected, inner)):
        sizes = ", ".join(map(str, expected))
        raise ValueError(f"bracewell.{function}: {name}: expected [slices, {sizes}] or [{sizes}], found {list(shape)}")
    return shape


def _on_host(array: Array) -> bool:
    name = library(array)
    if name == "torch":
        return array.device.type == "cpu"
    if name in ("jaxlib", "jax"):
        return all(device.platform == "cpu" for device in array.devices())
    return name != "cupy"


@lru_cache(maxsize=None)
def _torch_type(name: str) -> Any:
    import torch

    return getattr(torch, name)


@lru_cache(maxsize=None)
def _torch_stream() -> Callable[[int], int]:
    """What tells the current stream of a GPU: the function that compiled PyTorch code calls, as torch.cuda.current_stream makes
    an object of it first, which takes longer than a small projection."""
    import torch

    return getattr(torch._C, "_cuda_getCurrentRawStream", None) or (lambda gpu: torch.cuda.current_stream(gpu).cuda_stream)


def empty(like: Array, shape: Sequence[int], kind: str, zero: bool = False) -> Array:
    """A new array of the library, precision and device of another; kind: real, complex, or a type such as float64."""
    dtype = _KINDS.get((kind, is_double(like)), kind)
    name = library(like)
    if name == "torch":  # half of the time of torch.empty
        return (like.new_zeros if zero else like.new_empty)(tuple(shape), dtype=_torch_type(dtype))
    if name == "cupy":
        import cupy

        with like.device:
            return (cupy.zeros if zero else cupy.empty)(tuple(shape), dtype)
    if name in ("jaxlib", "jax") and not _on_host(like):
        raise TypeError("bracewell: expected JAX arrays in host memory, as others cannot be written, found one on a GPU: "
                        "pass CuPy's view of it (cupy.from_dlpack)")
    return (numpy.zeros if zero else numpy.empty)(tuple(shape), dtype)


def real_type(like: Array) -> str:
    """The name of the real type of an array's precision."""
    return _KINDS["real", is_double(like)]


def zeros(like: Array, shape: Sequence[int], kind: str) -> Array:
    return empty(like, shape, kind, zero=True)


def result(array: Array, like: Array) -> Array:
    """An output as an array of the caller's library: JAX's own cannot be written."""
    if library(like) in ("jaxlib", "jax") and array is not None:
        import jax.numpy

        return jax.numpy.asarray(array)
    return array


def expect_writable(function: str, out: Optional[Array]) -> None:
    """JAX's arrays are never written, though DLPack would let one: the caller's would stay as it was.

    Raises:
        TypeError: where the output is JAX's.
    """
    if out is not None and library(out) in ("jaxlib", "jax"):
        raise TypeError(f"bracewell.{function}: out: expected an array that can be written, found JAX's, which cannot: "
                        "take the result instead")


def expect_plain(values: Any) -> None:
    """Of values that are copied: what a copy would drop in silence.

    Raises:
        TypeError: on masked arrays, and tensors that require a gradient.
    """
    if isinstance(values, numpy.ma.MaskedArray):
        raise TypeError("bracewell: expected values without a mask, found a masked array: fill it (filled())")
    if library(values) == "torch" and values.requires_grad:
        raise TypeError("bracewell: expected values that need no gradient, found a tensor that requires one: bracewell.torch has "
                        "differentiable functions, or detach() it")


def copied(values: Any) -> Any:
    """A copy in the same library, which later changes in place of the caller's values do not reach."""
    expect_plain(values)
    if library(values) == "torch":
        return values.detach().clone()
    return values.copy() if hasattr(values, "copy") and getattr(values, "shape", ()) != () else on_host(values, "float64", "points")


def as_like(values: Any, like: Array, dtype: str) -> Array:
    """Values as a contiguous array of that type where `like` is."""
    expect_plain(values)
    if library(like) == "torch":
        import torch

        return torch.as_tensor(values, dtype=getattr(torch, dtype), device=like.device).contiguous()
    if library(like) == "cupy":
        import cupy

        with like.device:
            return cupy.ascontiguousarray(cupy.asarray(values, dtype=dtype))
    return numpy.ascontiguousarray(values, dtype=dtype)


def as_weights(array: Array, like: Array) -> Array:
    """Weights or a mask of any real type in the precision of `like`; complex ones as they are, which operators refuse."""
    return array if is_complex(array) else as_like(array, like, real_type(like))


def on_host(values: Any, dtype: Optional[str], name: str = "values") -> numpy.ndarray:
    """Values as a contiguous NumPy array of that type, or of their own.

    Raises:
        TypeError: where they are no numbers.
    """
    expect_plain(values)
    if library(values) == "torch":
        values = values.detach().cpu().numpy()
    elif library(values) == "cupy":
        values = values.get()
    try:
        return numpy.ascontiguousarray(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"bracewell: {name}: expected numbers, found {brief(values)}") from None


def current_stream(array: Array, stream: Optional[int]) -> int:
    """The caller's stream, as a number: the one that is current in the array's library, or the one that is given."""
    if stream is not None:
        return int(stream)
    name = library(array)
    if name == "torch":
        return _torch_stream()(array.get_device()) if array.is_cuda else 0
    if name == "cupy":
        import cupy

        return cupy.cuda.get_current_stream().ptr
    return 0


def place(array: Array) -> tuple:
    """What a plan that was made for this array fits: precision, library and device."""
    return is_double(array), library(array), "" if _on_host(array) else str(getattr(array, "device", ""))


def brief(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is not None and hasattr(value, "dtype") and len(shape) > 0:
        return f"{str(value.dtype).rpartition('.')[2]}{list(shape)}"
    if isinstance(value, (list, tuple)) and len(value) > 3:
        return f"<{len(value)} values>"
    if isinstance(value, list):
        return f"[{', '.join(map(brief, value))}]"
    words = repr(value)
    return words if len(words) < 100 and "\n" not in words else type(value).__name__


def _is_default(value: Any) -> bool:
    return value is None or (isinstance(value, list) and not value)


class Planned:
    """Plans of the compiled module stay in their process: copies and pickles have the arguments, and plan anew. Objects print as
    the calls that made them."""

    _shown: tuple[str, ...] = ()

    def __getstate__(self) -> dict:
        state = dict(self.__dict__)
        state.update({name: value for name, value in (("_plans", {}), ("_last", None)) if name in state})
        return state

    def __repr__(self) -> str:
        words = ", ".join(f"{name.lstrip('_')}={brief(getattr(self, name))}" for name in self._shown if not _is_default(getattr(self, name)))
        return f"bracewell.{type(self).__name__}({words})"


class Held(Planned):
    """What has memory of its own, perhaps of a device, which no copy or pickle takes along."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"bracewell.{type(self).__name__}: expected to stay in its process, found a copy or pickle of it: make "
                        "another from its arguments")
