# SPDX-License-Identifier: MIT
"""The operators as differentiable functions of PyTorch, on CPU and GPU, on the current stream.

They have hand-written gradients: exact derivatives with respect to every stored number. `torch.compile` takes them as they are,
by custom operators (``torch.ops.bracewell``).

Forward mode (``torch.func.jvp``, ``jacfwd``, ``torch.autograd.forward_ad``), gradients of gradients and ``torch.func.vmap`` are there
where they are exact; else they are refused with a sentence:

=====================  =================================  =====================================  ===================
function               forward mode                       gradients of gradients                 not there
=====================  =================================  =====================================  ===================
project, backproject   of spectra, shifts of `project`,   of spectra, at poses that need none    of matrices
                       filters, weights
NonuniformFFT          of values and points               of values and points
Tomography             of values, angles and shifts       of values, at angles that need none
PtychographyLoss       of object, probe and positions     none                                   vmap
AberratedProbe         none                               none
evaluate_ctf           none                               none                                   vmap
=====================  =================================  =====================================  ===================
"""

from __future__ import annotations

import math
from itertools import count
from typing import Any, List, Optional, Sequence, Tuple
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.autograd import Function

from . import _core
from . import contrast as _contrast
from . import gridding as _gridding
from . import projection as _projection
from . import ptychography as _ptychography
from . import tomography as _tomography

__all__ = ["AberratedProbe", "NonuniformFFT", "PtychographyLoss", "Tomography", "backproject", "evaluate_ctf", "insert", "project",
           "project_lines", "sample"]


def _ready(tensor: Optional[Tensor]) -> Optional[Tensor]:
    """A tensor as the operators read it."""
    if tensor is None:
        return None
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def _like(gradient: Tensor, tensor: Tensor) -> Tensor:
    """The sum of a gradient over the axes that a tensor shares."""
    return gradient.sum_to_size(tensor.shape)


def _extent(axis: int, *tensors: Optional[Tensor]) -> int:
    return max(tensor.shape[axis] for tensor in tensors if tensor is not None)


def _refuse(name: str):
    """No second derivatives of an operator that is itself a gradient."""

    def backward(ctx, *gradients):
        raise NotImplementedError(f"bracewell.torch.{name}: expected one backward pass, found a gradient of a gradient, which is "
                                  "not implemented.")

    return backward


def _refused(function: str, what: str) -> NotImplementedError:
    return NotImplementedError(f"bracewell.torch.{function}: expected no {what}, found one, which is not implemented")


def _one_by_one(function, info, in_dims, arguments):
    """vmap: a call for every element, whose results are stacked."""
    def part(value, axis, i):
        return value.select(axis, i) if isinstance(value, Tensor) and axis is not None else value

    results = [function(*(part(value, axis, i) for value, axis in zip(arguments, in_dims))) for i in range(info.batch_size)]
    if isinstance(results[0], tuple):
        return tuple(torch.stack(parts) for parts in zip(*results)), (0,) * len(results[0])
    return torch.stack(results), 0


_modes = getattr(torch._C, "_len_torch_dispatch_stack", None)


def _plainly(*tensors: Optional[Tensor]) -> bool:
    """Whether a call needs no dispatcher: tensors of no class of their own, which neither torch.compile nor a mode follows. The
    custom operators take longer than a small projection."""
    if _modes is None or _modes() or torch.compiler.is_compiling():
        return False
    for tensor in tensors:
        if type(tensor) is not Tensor and tensor is not None and type(tensor) is not torch.nn.Parameter:
            return False
    return True


def _quick(call: Any, *arguments: Any) -> Any:
    """What a function of the compiled module makes of usual tensors in one step. None where the call is not usual: a mode or torch.compile
    follows it, or tensors have a class of their own, gaps or shapes that do not fit."""
    if _modes is None or _modes() or torch.compiler.is_compiling():
        return None
    try:
        return call(*arguments)
    except TypeError:  # options of another type, which the slow path tells by their names
        return None


def _followed(*tensors: Optional[Tensor]) -> bool:
    """Whether derivatives may be asked for, by backward passes, forward mode or transforms of functions."""
    if torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0:
        return True
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad:
                return True
    return False


def _save(ctx: Any, *tensors: Optional[Tensor], output: Optional[Tensor] = None) -> None:
    """Keeps what derivatives need; the output is needed by forward mode alone."""
    if torch.autograd.forward_ad._current_level < 0 and not torch._C._are_functorch_transforms_active():
        ctx.save_for_backward(*tensors)
        return
    kept = tensors if output is None else (*tensors, output)
    ctx.save_for_backward(*kept)
    ctx.save_for_forward(*kept)


class _Operator(Function):
    """A Function whose `apply` is the one of a Function without `setup_context`, where no transform of functions takes part: with it
    PyTorch takes longer than a small projection."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)

        def forward(ctx, *inputs):
            output = cls.forward(*inputs)
            cls.setup_context(ctx, inputs, output)
            return output

        cls._eager = type(Function)(cls.__name__, (Function,), {name: staticmethod(function) for name, function in (
            ("forward", forward), ("backward", cls.backward), ("jvp", cls.jvp))})

    @classmethod
    def apply(cls, *arguments):
        if torch._C._are_functorch_transforms_active():
            return super().apply(*arguments)
        if not torch.is_grad_enabled() and torch.autograd.forward_ad._current_level < 0:  # in backward passes, mostly
            return cls.forward(*arguments)
        return cls._eager.apply(*arguments)


def _register(operator, fake, backward, save=None):
    operator.register_fake(fake)
    operator.register_autograd(backward, setup_context=save)


# ---- Projection -----------------------------------------------------------------------------------------------------


def _project_now(reconstruction: Tensor, matrices: Tensor, shifts: Optional[Tensor], filters: Optional[Tensor], shape: List[int],
                 width: int, interpolation: str, oversampling: Optional[float], radius: Optional[float],
                 ewald_radius: Optional[float], skip_redundant: bool) -> Tensor:
    return _projection.project(_ready(reconstruction), _ready(matrices), _ready(shifts), _ready(filters), shape=shape, width=width,
                               interpolation=interpolation, oversampling=oversampling, radius=radius, ewald_radius=ewald_radius)


_project = torch.library.custom_op("bracewell::project", _project_now, mutates_args=())


def _project_fake(reconstruction, matrices, shifts, filters, shape, *_):
    return reconstruction.new_empty((_extent(0, reconstruction, matrices, shifts, filters), _extent(1, matrices, shifts, filters),
                                     *shape[:-1], shape[-1] // 2 + 1))


def _project_gradients_now(cotangent: Tensor, reconstruction: Tensor, matrices: Tensor, shifts: Optional[Tensor],
                           filters: Optional[Tensor], wanted: str, shape: List[int], width: int, interpolation: str,
                           oversampling: Optional[float], radius: Optional[float], ewald_radius: Optional[float],
                           skip_redundant: bool) -> List[Tensor]:
    given = _projection.project_gradients(_ready(reconstruction), _ready(matrices), _ready(cotangent), _ready(shifts),
                                          _ready(filters), wanted=wanted.split(), shape=shape, width=width, interpolation=interpolation,
                                          oversampling=oversampling, radius=radius, ewald_radius=ewald_radius,
                                          skip_redundant=skip_redundant)
    return [getattr(given, name) for name in wanted.split()]


_project_gradients = torch.library.custom_op("bracewell::project_gradients", _project_gradients_now, mutates_args=())


def _project_gradients_fake(cotangent, reconstruction, matrices, shifts, filters, wanted, *_):
    of = {"reconstruction": reconstruction, "matrices": matrices, "shifts": shifts}
    return [torch.empty_like(of[name], memory_format=torch.contiguous_format) for name in wanted.split()]


def _project_save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:4])
    ctx.options = inputs[4:]


def _project_backward(ctx, cotangent):
    reconstruction, matrices, shifts, filters = ctx.saved_tensors
    names = ("reconstruction", "matrices", "shifts")
    wanted = [name for name, needed in zip(names, ctx.needs_input_grad) if needed]
    given = dict(zip(wanted, _project_gradients(cotangent, reconstruction, matrices, shifts, filters, " ".join(wanted),
                                                *ctx.options) if wanted else []))
    of_filters = None
    if ctx.needs_input_grad[3]:
        unfiltered = _project(reconstruction, matrices, shifts, None, *ctx.options)
        of_filters = _like((cotangent.conj() * unfiltered).real, filters)
    return (*(given.get(name) for name in names), of_filters, *[None] * len(ctx.options))


_register(_project, _project_fake, _project_backward, _project_save)
_register(_project_gradients, _project_gradients_fake, _refuse("project"))


def _shift_phases(projections: Tensor, shifts: Tensor, shape: Sequence[int]) -> Tensor:
    """-2 pi i k.s / n of every stored sample: the derivative of the phase along shifts."""
    phases, axes = projections.new_zeros(()), len(shape)
    for axis, size in enumerate(shape):
        k = (torch.fft.fftfreq if axis < axes - 1 else torch.fft.rfftfreq)(size, dtype=shifts.dtype, device=shifts.device)
        k = torch.where(k == -0.5, -k, k)  # the Nyquist frequency of rows is positive
        phases = phases + shifts[..., axis][(...,) + (None,) * axes] * k[(...,) + (None,) * (axes - 1 - axis)]
    return -2j * math.pi * phases


class _Project(_Operator):
    """Of `project`, out of torch.compile: with forward mode and vmap."""

    @staticmethod
    def forward(reconstruction, matrices, shifts, filters, options):
        projections = _quick(_core.project_tensors, reconstruction, matrices, shifts, filters, *options)
        if projections is not None:
            return projections
        call = _project_now if _plainly(reconstruction, matrices, shifts, filters) else _project
        return call(reconstruction, matrices, shifts, filters, *options)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        _save(ctx, *inputs[:4], output=output)
        ctx.options = inputs[4]

    @staticmethod
    def backward(ctx, cotangent):
        if cotangent is None:
            return (None,) * 5
        reconstruction, matrices, shifts, filters = ctx.saved_tensors[:4]
        needed, options = ctx.needs_input_grad, ctx.options
        of_filters, given = None, (None,) * 3
        if any(needed[:3]):
            given = _ProjectGradients.apply(cotangent, reconstruction, matrices, shifts, filters, tuple(needed[:3]), options)
        if needed[3]:
            of_filters = _like((cotangent.conj() * _Project.apply(reconstruction, matrices, shifts, None, options)).real, filters)
        return (*given, of_filters, None)

    @staticmethod
    def jvp(ctx, of_reconstruction, of_matrices, of_shifts, of_filters, _):
        reconstruction, matrices, shifts, filters, projections = ctx.saved_tensors
        if of_matrices is not None:
            raise _refused("project", "forward-mode derivative of matrices")
        tangent = torch.zeros_like(projections)
        if of_reconstruction is not None:
            tangent = tangent + _Project.apply(of_reconstruction, matrices, shifts, filters, ctx.options)
        if of_shifts is not None:
            tangent = tangent + projections * _shift_phases(projections, of_shifts, ctx.options[0])
        if of_filters is not None:
            tangent = tangent + _Project.apply(reconstruction, matrices, shifts, None, ctx.options) * of_filters
        return tangent

    @staticmethod
    def vmap(info, in_dims, *arguments):
        return _one_by_one(_Project.apply, info, in_dims, arguments)


class _ProjectGradients(_Operator):
    """Derivatives of `project`. That of the reconstruction is linear in the cotangent: its transpose is `project`."""

    @staticmethod
    def forward(cotangent, reconstruction, matrices, shifts, filters, needed, options):
        gradients = _quick(_core.project_gradients_tensors, _ready(cotangent), reconstruction, matrices, shifts, filters, *needed, *options)
        if gradients is not None:
            return gradients
        names = [name for name, wanted in zip(("reconstruction", "matrices", "shifts"), needed) if wanted]
        call = _project_gradients_now if _plainly(cotangent, reconstruction, matrices, shifts, filters) else _project_gradients
        given = iter(call(cotangent, reconstruction, matrices, shifts, filters, " ".join(names), *options))
        return tuple(next(given) if wanted else None for wanted in needed)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        _save(ctx, *inputs[2:5])
        ctx.reconstruction, ctx.needed, ctx.options = inputs[1], inputs[5], inputs[6]

    @staticmethod
    def _linear(ctx, others):
        """Whether what is asked for is linear: the reconstruction's gradient, which redundant samples are a part of."""
        if any(others) or any(ctx.needed[1:]) or ctx.options[-1]:
            _refuse("project")(ctx)

    @staticmethod
    def backward(ctx, of_reconstruction, *others):
        _ProjectGradients._linear(ctx, (ctx.needs_input_grad[i] for i in (2, 3, 4)))
        return (None if of_reconstruction is None else _Project.apply(of_reconstruction, *ctx.saved_tensors, ctx.options),
                *[None] * 6)

    @staticmethod
    def jvp(ctx, of_cotangent, of_reconstruction, *others):
        _ProjectGradients._linear(ctx, (tangent is not None for tangent in others[:3]))
        given = None if of_cotangent is None else _ProjectGradients.apply(of_cotangent, ctx.reconstruction, *ctx.saved_tensors,
                                                                         ctx.needed, ctx.options)[0]
        return given, None, None

    @staticmethod
    def vmap(info, in_dims, *arguments):
        needed = arguments[5]
        results, dims = _one_by_one(lambda *part: tuple(given for given in _ProjectGradients.apply(*part) if given is not None),
                                    info, (*in_dims[:5], None, None), arguments)
        given = iter(results)
        return tuple(next(given) if wanted else None for wanted in needed), tuple(0 if wanted else None for wanted in needed)


def project(reconstruction: Tensor, matrices: Tensor, shifts: Optional[Tensor] = None, filters: Optional[Tensor] = None, *,
            shape: Optional[Sequence[int]] = None, width: Optional[int] = None, interpolation: str = "catmull_rom",
            oversampling: Optional[float] = None, radius: Optional[float] = None, ewald_radius: Optional[float] = None,
            skip_redundant: bool = False) -> Tensor:
    """`bracewell.project`, differentiable in reconstruction, matrices, shifts and filters.

    With skip_redundant, gradients leave out the samples on column 0 whose Friedel mate is stored too: the rule of the
    torch-projectors paper for losses on the full spectrum. By default they are exact.
    """
    volume = _projection._sizes("torch.project", "reconstruction", reconstruction, 1, width)
    return _project_at(reconstruction, matrices, shifts, filters, (list(shape if shape is not None else volume[-2:]), volume[-1],
                                                                   interpolation, oversampling, radius, ewald_radius, skip_redundant))


def _project_at(reconstruction, matrices, shifts, filters, options):
    tensors = (reconstruction, matrices, shifts, filters)
    if torch.compiler.is_compiling():
        return _project(*tensors, *options)
    if not _followed(*tensors):
        return _Project.forward(*tensors, options)
    return _Project.apply(*tensors, options)


def _backproject_now(projections: Tensor, matrices: Tensor, shifts: Optional[Tensor], filters: Optional[Tensor],
                     weights: Optional[Tensor], shape: List[int], width: int, interpolation: str, oversampling: Optional[float],
                     radius: Optional[float], ewald_radius: Optional[float], kernel_weights: str) -> Tuple[Tensor, Tensor]:
    data, weight = _projection.backproject(_ready(projections), _ready(matrices), _ready(shifts), _ready(filters),
                                           weights=_ready(weights), shape=shape, width=width, interpolation=interpolation,
                                           oversampling=oversampling, radius=radius, ewald_radius=ewald_radius,
                                           kernel_weights=kernel_weights)
    return data, data.real.new_empty(0) if weight is None else weight


_backproject = torch.library.custom_op("bracewell::backproject", _backproject_now, mutates_args=())


def _backproject_fake(projections, matrices, shifts, filters, weights, shape, *_):
    extents = (projections.shape[0], *shape[:-1], shape[-1] // 2 + 1)
    real = projections.dtype.to_real()
    return projections.new_empty(extents), projections.new_empty(0 if weights is None else extents, dtype=real)


def _backproject_gradients_now(data: Tensor, weight: Optional[Tensor], projections: Tensor, matrices: Tensor,
                               shifts: Optional[Tensor], filters: Optional[Tensor], weights: Optional[Tensor], wanted: str,
                               shape: List[int], width: int, interpolation: str, oversampling: Optional[float],
                               radius: Optional[float], ewald_radius: Optional[float], kernel_weights: str) -> List[Tensor]:
    given = _projection.backproject_gradients(_ready(projections), _ready(matrices), _ready(data), _ready(weight), _ready(shifts),
                                              _ready(filters), weights=_ready(weights), wanted=wanted.split(), shape=shape, width=width,
                                              interpolation=interpolation, oversampling=oversampling, radius=radius,
                                              ewald_radius=ewald_radius, kernel_weights=kernel_weights)
    return [getattr(given, name) for name in wanted.split()]


_backproject_gradients = torch.library.custom_op("bracewell::backproject_gradients", _backproject_gradients_now, mutates_args=())


def _backproject_gradients_fake(data, weight, projections, matrices, shifts, filters, weights, wanted, *_):
    of = {"projections": projections, "matrices": matrices, "shifts": shifts}
    return [projections.new_empty(projections.shape, dtype=projections.dtype.to_real()) if name == "weights" else
            torch.empty_like(of[name], memory_format=torch.contiguous_format) for name in wanted.split()]


def _backproject_save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:5])
    ctx.options = inputs[5:]


def _backproject_backward(ctx, data, weight):
    projections, matrices, shifts, filters, weights = ctx.saved_tensors
    if weights is None:
        weight = None
    names = ("projections", "matrices", "shifts", "filters", "weights")
    needed = dict(zip(names, ctx.needs_input_grad))
    wanted = [name for name in ("projections", "matrices", "shifts", "weights") if needed[name]]
    given = dict(zip(wanted, _backproject_gradients(data, weight, projections, matrices, shifts, filters, weights,
                                                    " ".join(wanted), *ctx.options) if wanted else []))
    if needed["weights"]:
        given["weights"] = _like(given["weights"], weights)
    if needed["filters"]:
        inserted, = _backproject_gradients(data, weight, projections, matrices, shifts, None, weights, "projections",
                                           *ctx.options)
        given["filters"] = _like((inserted.conj() * projections).real, filters)
    return (*(given.get(name) for name in names), *[None] * len(ctx.options))


_register(_backproject, _backproject_fake, _backproject_backward, _backproject_save)
_register(_backproject_gradients, _backproject_gradients_fake, _refuse("backproject"))


class _Backproject(_Operator):
    """Of `backproject`, out of torch.compile: with forward mode and vmap. Its weight has no elements where there are no weights."""

    @staticmethod
    def forward(projections, matrices, shifts, filters, weights, options):
        sums = _quick(_core.backproject_tensors, projections, matrices, shifts, filters, weights, *options)
        if sums is not None:
            return sums
        call = _backproject_now if _plainly(projections, matrices, shifts, filters, weights) else _backproject
        return call(projections, matrices, shifts, filters, weights, *options)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        _save(ctx, *inputs[:5])
        ctx.options = inputs[5]

    @staticmethod
    def backward(ctx, data, weight):
        tensors, needed, options = ctx.saved_tensors, ctx.needs_input_grad, ctx.options
        if data is None:
            data = tensors[0].new_zeros((tensors[0].shape[0], *options[0][:-1], options[0][-1] // 2 + 1))
        weight = None if tensors[4] is None else torch.zeros_like(data.real) if weight is None else weight
        if tuple(needed[:5]) == (True, False, False, False, False):
            return (_Unproject.apply(data, *tensors[:4], options), *[None] * 5)
        given = _BackprojectGradients.apply(data, weight, *tensors, tuple(needed[:5]), options)
        return (*given, None)

    @staticmethod
    def jvp(ctx, of_projections, of_matrices, of_shifts, of_filters, of_weights, _):
        projections, matrices, shifts, filters, weights = ctx.saved_tensors
        for name, tangent in (("matrices", of_matrices), ("shifts", of_shifts)):
            if tangent is not None:
                raise _refused("backproject", f"forward-mode derivative of {name}")

        def data(values, factors):
            return _Backproject.apply(values, matrices, shifts, factors, None, ctx.options)[0]

        parts = []
        if of_projections is not None:
            parts.append(data(of_projections, filters))
        if of_filters is not None:
            parts.append(data(projections * of_filters, None))
        tangent = sum(parts) if parts else torch.zeros_like(data(projections, None))
        of_weight = tangent.real.new_zeros(0)
        if weights is not None:
            of_weights = torch.zeros_like(weights) if of_weights is None else of_weights
            of_weight = _Backproject.apply(torch.zeros_like(projections), matrices, shifts, None, of_weights, ctx.options)[1]
        return tangent, of_weight

    @staticmethod
    def vmap(info, in_dims, *arguments):
        return _one_by_one(_Backproject.apply, info, in_dims, arguments)


class _BackprojectGradients(_Operator):
    """Derivatives of `backproject`, which have none."""

    @staticmethod
    def forward(data, weight, projections, matrices, shifts, filters, weights, needed, options):
        of_projections, of_matrices, of_shifts, of_filters, of_weights = needed
        if not of_filters:
            gradients = _quick(_core.backproject_gradients_tensors, _ready(data), _ready(weight), projections, matrices, shifts, filters,
                               weights, of_projections, of_weights, of_matrices, of_shifts, *options)
            if gradients is not None:
                images, worths, turns, moves = gradients
                return images, turns, moves, None, _like(worths, weights) if of_weights else None
        of_all = dict(zip(("projections", "matrices", "shifts", "filters", "weights"), needed))
        names = [name for name in ("projections", "matrices", "shifts", "weights") if of_all[name]]
        plain = _plainly(data, weight, projections, matrices, shifts, filters, weights)
        call = _backproject_gradients_now if plain else _backproject_gradients
        given = dict(zip(names, call(data, weight, projections, matrices, shifts, filters, weights, " ".join(names), *options)
                         if names else []))
        if of_all["filters"]:
            unfiltered = given["projections"] if filters is None else call(
                data, weight, projections, matrices, shifts, None, weights, "projections", *options)[0]
            given["filters"] = _like((projections.conj() * unfiltered).real, filters)
        if of_all["weights"]:
            given["weights"] = _like(given["weights"], weights)
        return tuple(given.get(name) for name in of_all)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    backward = staticmethod(_refuse("backproject"))
    jvp = staticmethod(_refuse("backproject"))

    @staticmethod
    def vmap(info, in_dims, *arguments):
        raise _refused("backproject", "vmap of a gradient of poses")


class _Unproject(_Operator):
    """The transpose of `backproject` in projections alone: linear, and its transpose is `backproject`."""

    @staticmethod
    def forward(data, projections, matrices, shifts, filters, options):
        gradients = _quick(_core.backproject_gradients_tensors, _ready(data), None, projections, matrices, shifts, filters, None,
                           True, False, False, False, *options)
        if gradients is not None:
            return gradients[0]
        call = _backproject_gradients_now if _plainly(data, projections, matrices, shifts, filters) else _backproject_gradients
        return call(data, None, projections, matrices, shifts, filters, None, "projections", *options)[0]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        _save(ctx, *inputs[1:5])
        ctx.options = inputs[5]

    @staticmethod
    def backward(ctx, cotangent):
        if any(ctx.needs_input_grad[2:5]):
            _refuse("backproject")(ctx)
        if cotangent is None:
            return (None,) * 6
        _, matrices, shifts, filters = ctx.saved_tensors
        return (_Backproject.apply(cotangent, matrices, shifts, filters, None, ctx.options)[0], *[None] * 5)

    @staticmethod
    def jvp(ctx, of_data, of_projections, *others):
        if any(tangent is not None for tangent in others[:3]):
            _refuse("backproject")(ctx)
        projections, matrices, shifts, filters = ctx.saved_tensors
        if of_data is None:
            return torch.zeros_like(projections)
        return _Unproject.apply(of_data, projections, matrices, shifts, filters, ctx.options)

    @staticmethod
    def vmap(info, in_dims, *arguments):
        return _one_by_one(_Unproject.apply, info, in_dims, arguments)


def backproject(projections: Tensor, matrices: Tensor, shifts: Optional[Tensor] = None, filters: Optional[Tensor] = None, *,
                weights: Optional[Tensor] = None, shape: Optional[Sequence[int]] = None, width: Optional[int] = None,
                interpolation: str = "catmull_rom", oversampling: Optional[float] = None, radius: Optional[float] = None,
                ewald_radius: Optional[float] = None, kernel_weights: str = "signed") -> Tuple[Tensor, Optional[Tensor]]:
    """`bracewell.backproject`, differentiable in projections, matrices, shifts, filters and weights."""
    sizes = _projection._sizes("torch.backproject", "projections", projections, 2, width)
    if shape is None:
        shape = sizes if matrices.shape[-1] <= len(sizes) else (sizes[0],) + sizes
    data, weight = _backproject_at(projections, matrices, shifts, filters, weights,
                                   (list(shape), sizes[-1], interpolation, oversampling, radius, ewald_radius, kernel_weights))
    return data, None if weights is None else weight


def _backproject_at(projections, matrices, shifts, filters, weights, options):
    """Without weights the second has no elements."""
    tensors = (projections, matrices, shifts, filters, weights)
    if torch.compiler.is_compiling():
        return _backproject(*tensors, *options)
    if not _followed(*tensors):
        return _Backproject.forward(*tensors, options)
    return _Backproject.apply(*tensors, options)


# ---- Plans: operators know them by number ---------------------------------------------------------------------------

_numbers = count()
_plans: WeakValueDictionary = WeakValueDictionary()


def _plan_of(number: Any) -> Any:
    """The plan of a number, which torch.compile makes symbolic where a second plan takes the place of a first."""
    return _plans[int(number)]


class _Numbered:
    def _enter(self) -> None:
        self._number = next(_numbers)
        _plans[self._number] = self


@torch.library.custom_op("bracewell::linear", mutates_args=())
def _linear(values: Tensor, plan: int, adjoint: bool) -> Tensor:
    return _plan_of(plan)._apply(_ready(values), adjoint)


def _linear_fake(values, plan, adjoint):
    return values.new_empty(_plan_of(plan)._shape(values.shape, adjoint))


def _linear_save(ctx, inputs, output):
    _, ctx.plan, ctx.adjoint = inputs
    ctx.keep = _plan_of(ctx.plan)


def _linear_backward(ctx, cotangent):
    return ctx.keep._transposed(cotangent, ctx.adjoint), None, None


_register(_linear, _linear_fake, _linear_backward, _linear_save)


def _is_active(values: Any) -> bool:
    """Whether derivatives with respect to a tensor may be asked for."""
    return isinstance(values, Tensor) and (values.requires_grad or torch._C._functorch.is_functorch_wrapped_tensor(values) or
                                           torch.autograd.forward_ad.unpack_dual(values).tangent is not None)


def _plain(function: str, name: str, values: Any) -> Any:
    """The numbers of a tensor, without what derivatives it takes part in."""
    if not isinstance(values, Tensor):
        return values
    while torch._C._functorch.is_functorch_wrapped_tensor(values):
        if torch._C._functorch.is_batchedtensor(values):
            raise _refused(function, f"vmap over {name}")
        values = torch._C._functorch.get_unwrapped(values)
    if torch._C._functorch.peek_interpreter_stack() is not None:  # transforms that would take part in whatever is done to a tensor here
        with temporarily_clear_interpreter_stack():
            return torch.autograd.forward_ad.unpack_dual(values.detach()).primal.detach().cpu().numpy()
    return torch.autograd.forward_ad.unpack_dual(values.detach()).primal.detach()


def _slices_together(apply, info, in_dims, axes, values, *others):
    """vmap of a function that takes slices: those of all elements in one call. axes: of values without slices."""
    if any(axis is not None for axis in in_dims[1:]):
        raise _refused("vmap", "batch of points, angles or shifts")
    values = values.movedim(in_dims[0], 0)
    given = apply(values.reshape(-1, *values.shape[values.dim() - axes:]), *others)
    return given.reshape(*values.shape[:values.dim() - axes], *given.shape[1:]), 0


class _Nonuniform(Function):
    """Of `NonuniformFFT`. Every derivative is made of the two transforms, and has derivatives itself."""

    @staticmethod
    def forward(values, points, pair, adjoint):
        return pair._apply(_ready(values), adjoint)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[:2])
        ctx.save_for_forward(*inputs[:2])
        ctx.pair, ctx.adjoint = inputs[2:]

    @staticmethod
    def _positions(pair, images):
        """2 pi i X of pixels, along the axes that columns of points belong to."""
        shape = pair._plan.shape
        for axis in range(len(shape) - 1, -1, -1):
            at = torch.arange(shape[axis], dtype=images.real.dtype, device=images.device) - shape[axis] // 2
            yield (2j * math.pi * at)[(...,) + (None,) * (len(shape) - 1 - axis)]

    @staticmethod
    def backward(ctx, cotangent):
        if cotangent is None:
            return (None,) * 4
        values, points = ctx.saved_tensors
        given = _Nonuniform.apply(cotangent, points, ctx.pair, not ctx.adjoint) if ctx.needs_input_grad[0] else None
        of_points = None
        if ctx.needs_input_grad[1]:
            images, samples = (cotangent, values) if ctx.adjoint else (values, cotangent)
            columns = [(samples.conj() * _Nonuniform.apply(-at * images, points, ctx.pair, False)).real.reshape(-1, len(points)).sum(0)
                       for at in _Nonuniform._positions(ctx.pair, images)]
            of_points = torch.stack(columns, -1).to(points)
        return given, of_points, None, None

    @staticmethod
    def jvp(ctx, of_values, of_points, *_):
        values, points = ctx.saved_tensors

        def transform(array):
            return _Nonuniform.apply(array, points, ctx.pair, ctx.adjoint)

        parts = [] if of_values is None else [transform(of_values)]
        if of_points is not None:
            columns = of_points.to(values.real.dtype).unbind(-1)
            images = values if not ctx.adjoint else torch.empty(0, dtype=values.dtype, device=values.device)
            for column, at in zip(columns, _Nonuniform._positions(ctx.pair, images)):
                parts.append(at * transform(values * column) if ctx.adjoint else column * transform(-at * values))
        return sum(parts) if parts else torch.zeros_like(transform(values))

    @staticmethod
    def vmap(info, in_dims, values, points, pair, adjoint):
        return _slices_together(_Nonuniform.apply, info, in_dims, 1 if adjoint else len(pair._plan.shape), values, points, pair, adjoint)


class _NonuniformPair(_Numbered):
    def __init__(self, plan):
        self._plan = plan
        self._enter()

    def _apply(self, values, adjoint):
        return self._plan.adjoint(values) if adjoint else self._plan.forward(values)

    def _transposed(self, cotangent, adjoint):
        return _linear(cotangent, self._number, not adjoint)

    def _shape(self, shape, adjoint):
        sizes = self._plan.shape
        return (*shape[:-1], *sizes) if adjoint else (*shape[:len(shape) - len(sizes)], len(self._plan.points))


class NonuniformFFT:
    """`bracewell.NonuniformFFT`, differentiable in samples, images and points, as often as one likes; arguments as there. Points
    that are a tensor get derivatives."""

    def __init__(self, points: Any, shape: Sequence[int], **options):
        self._shape, self._options = tuple(shape), options
        self.set_points(points)

    def set_points(self, points: Any) -> None:
        """Takes other points, any number of them."""
        self._points = points if _is_active(points) else None
        self._pair = _NonuniformPair(_gridding.NonuniformFFT(_plain("NonuniformFFT", "points", points), self._shape, **self._options))

    def adjoint(self, samples: Tensor) -> Tensor:
        """Samples, complex ``[slices, points]`` or ``[points]``, to images."""
        return self._between(samples, True)

    def forward(self, images: Tensor) -> Tensor:
        """Images, complex ``[slices, (depth,) height, width]`` or without slices, to samples."""
        return self._between(images, False)

    def _between(self, values, adjoint):
        if not values.is_complex():
            values = values.to(torch.complex128 if values.dtype == torch.float64 else torch.complex64)
        if torch.compiler.is_compiling() and self._points is None:
            return _linear(values, self._pair._number, adjoint)
        return _Nonuniform.apply(values, self._points, self._pair, adjoint)

    def __getstate__(self):
        points = self._pair._plan.points if self._points is None else self._points
        return {"points": points, "shape": self._shape, "options": self._options}

    def __setstate__(self, state):
        self.__init__(state["points"], state["shape"], **state["options"])

    def __repr__(self):
        return repr(self._pair._plan).replace("bracewell.", "bracewell.torch.", 1)


class _Beam(Function):
    """Of `Tomography`: linear in sinograms and images, with gradients of angles and shifts by `bracewell.ViewSlopes`."""

    @staticmethod
    def forward(values, angles, shifts, pair, adjoint):
        return pair._apply(_ready(values), adjoint)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[:3])
        ctx.save_for_forward(*inputs[:3])
        ctx.pair, ctx.adjoint = inputs[3:]

    @staticmethod
    def backward(ctx, cotangent):
        if cotangent is None:
            return (None,) * 5
        values, angles, shifts = ctx.saved_tensors
        pair, needed = ctx.pair, ctx.needs_input_grad

        def transposed(array):
            return _Beam.apply(array, angles, shifts, pair, not ctx.adjoint)

        given = pair._scaled(transposed, cotangent, ctx.adjoint) if needed[0] else None
        of_angles = of_shifts = None
        if needed[1] or needed[2]:
            images, rows = (cotangent, values) if ctx.adjoint else (values, cotangent)
            if ctx.adjoint and pair._factor is not None:
                rows = rows / pair._factor.to(rows)
            of_angles, of_shifts = _ViewGradients.apply(images, rows, pair)
            of_angles = of_angles.to(angles) if needed[1] else None
            of_shifts = of_shifts.to(shifts) if needed[2] else None
        return given, of_angles, of_shifts, None, None

    @staticmethod
    def jvp(ctx, of_values, of_angles, of_shifts, *_):
        values, angles, shifts = ctx.saved_tensors
        if ctx.adjoint and (of_angles is not None or of_shifts is not None):
            raise _refused("Tomography.backproject", "forward-mode derivative of angles and shifts")
        parts = [] if of_values is None else [_Beam.apply(of_values, angles, shifts, ctx.pair, ctx.adjoint)]
        if of_angles is not None or of_shifts is not None:
            turns, moves = _ViewSlopes.apply(values, ctx.pair)
            parts += [slopes * tangent.to(slopes)[:, None] for slopes, tangent in ((turns, of_angles), (moves, of_shifts))
                      if tangent is not None]
        return sum(parts) if parts else torch.zeros_like(_Beam.apply(values, angles, shifts, ctx.pair, ctx.adjoint))

    @staticmethod
    def vmap(info, in_dims, values, angles, shifts, pair, adjoint):
        return _slices_together(_Beam.apply, info, in_dims, 2, values, angles, shifts, pair, adjoint)


class _Once(Function):
    """A derivative that has none."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)

    backward = staticmethod(_refuse("Tomography"))
    jvp = staticmethod(_refuse("Tomography"))

    @staticmethod
    def vmap(info, in_dims, *arguments):
        raise _refused("Tomography", "vmap of a derivative of angles and shifts")


class _ViewGradients(_Once):
    @staticmethod
    def forward(images, rows, pair):
        given = pair._plan.gradients(_ready(images), _ready(rows))
        return given.angles, given.shifts


class _ViewSlopes(_Once):
    @staticmethod
    def forward(images, pair):
        return pair._plan.slopes(_ready(images))


class Tomography(_Numbered):
    """`bracewell.Tomography`, differentiable in sinograms and images, as often as one likes; arguments as there.

    Angles, shifts and a centre that are tensors which require gradients get them, by the Fourier method; `bracewell.ViewSlopes` then
    computes: of an even width the Nyquist frequency of rows is left out.
    """

    def __init__(self, angles: Any, width: int, *, degrees: Optional[bool] = None, centre: Any = None, shifts: Any = None, **options):
        self._arguments = (angles, width, {"degrees": degrees, "centre": centre, "shifts": shifts, **options})
        if _is_active(angles) and degrees:
            angles, degrees = torch.deg2rad(angles), False
        if _is_active(centre):  # what all views are shifted by
            shifts = torch.zeros(len(angles), dtype=torch.float64) if shifts is None else torch.as_tensor(shifts)
            at = float(_plain("Tomography", "centre", centre))
            shifts, centre = shifts + (centre - at), at
        self._angles = angles if _is_active(angles) else None
        self._shifts = shifts if _is_active(shifts) else None
        options.update(degrees=degrees, centre=centre, shifts=_plain("Tomography", "shifts", shifts))
        kind = _tomography.Tomography
        if self._angles is not None or self._shifts is not None:
            kind = _tomography.ViewSlopes
            method = options.pop("method", "fourier")
            if method != "fourier":
                raise ValueError(f"bracewell.torch.Tomography: method: expected fourier with gradients of angles and shifts, found {method}")
        self._plan = kind(_plain("Tomography", "angles", angles), width, **options)
        self._factor = None
        if options.get("units") == "line_integrals":
            weights = options.get("weights")
            weights = torch.ones(len(self._plan.angles)) if weights is None else torch.as_tensor(weights)
            if bool((weights <= 0).any()):
                raise ValueError("bracewell.torch.Tomography: weights: expected positive ones in units of line integrals, found others")
            self._factor = (len(self._plan.angles) / math.pi / weights.double())[:, None]
        self._enter()

    def backproject(self, sinograms: Tensor) -> Tensor:
        """Sinograms ``[slices, angles, width]`` to images ``[slices, n, n]``, or both without slices."""
        return self._between(sinograms, True)

    def project(self, images: Tensor) -> Tensor:
        """Images to sinograms."""
        return self._between(images, False)

    def _between(self, values, adjoint):
        if not values.is_floating_point():
            values = values.float()
        if torch.compiler.is_compiling() and self._angles is None and self._shifts is None:
            return _linear(values, self._number, adjoint)
        return _Beam.apply(values, self._angles, self._shifts, self, adjoint)

    def _apply(self, values, adjoint):
        return self._plan.backproject(values) if adjoint else self._plan.project(values)

    def _scaled(self, transposed, cotangent, adjoint):
        """The transpose: in units of line integrals rows of `project` are those of the transpose times a factor."""
        factor = None if self._factor is None else self._factor.to(cotangent)
        if factor is not None and not adjoint:
            cotangent = cotangent * factor
        gradient = transposed(cotangent)
        return gradient / factor if factor is not None and adjoint else gradient

    def _transposed(self, cotangent, adjoint):
        return self._scaled(lambda array: _linear(array, self._number, not adjoint), cotangent, adjoint)

    def _shape(self, shape, adjoint):
        plan = self._plan
        return (*shape[:-2], plan.image, plan.image) if adjoint else (*shape[:-2], len(plan.angles), plan.width)

    def __getstate__(self):
        return self._arguments

    def __setstate__(self, arguments):
        self.__init__(*arguments[:2], **arguments[2])

    def __repr__(self):
        return repr(self._plan).replace("bracewell.", "bracewell.torch.", 1)


# ---- Contrast -------------------------------------------------------------------------------------------------------


class _Contrast(Function):
    @staticmethod
    def forward(shape, pixel_size, like, *parameters):
        return _contrast.evaluate_ctf(_contrast.CTFParameters(*map(_ready, parameters)), shape, pixel_size, like)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[3:])
        ctx.shape, ctx.pixel_size = inputs[:2]

    @staticmethod
    def backward(ctx, cotangent):
        if cotangent is None:
            return (None,) * len(ctx.needs_input_grad)
        return (None, None, None, *_ContrastGradients.apply(cotangent, ctx.shape, ctx.pixel_size, *ctx.saved_tensors))

    @staticmethod
    def jvp(ctx, *tangents):
        raise _refused("evaluate_ctf", "forward-mode derivative")

    @staticmethod
    def vmap(info, in_dims, *arguments):
        raise _refused("evaluate_ctf", "vmap")


class _ContrastGradients(Function):
    @staticmethod
    def forward(cotangent, shape, pixel_size, *parameters):
        found = _contrast.ctf_gradients(_contrast.CTFParameters(*map(_ready, parameters)), pixel_size, _ready(cotangent),
                                        width=shape[-1])
        return tuple(_like(torch.as_tensor(gradient), torch.atleast_1d(of)).reshape(of.shape).to(of)
                     for gradient, of in zip(found, parameters))

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    backward = staticmethod(_refuse("evaluate_ctf"))
    jvp = staticmethod(_refuse("evaluate_ctf"))


def evaluate_ctf(parameters: _contrast.CTFParameters, shape: Sequence[int], pixel_size: float, like: Tensor) -> Tensor:
    """`bracewell.evaluate_ctf`, differentiable in the parameters; arguments as there."""
    tensors = (value if isinstance(value, Tensor) else torch.as_tensor(value, dtype=torch.float64) for value in parameters)
    return _Contrast.apply(tuple(shape), float(pixel_size), like.detach(), *tensors)


# ---- Ptychography ---------------------------------------------------------------------------------------------------


@torch.library.custom_op("bracewell::ptychography", mutates_args=())
def _ptychography_loss(object: Tensor, probe: Tensor, positions: Optional[Tensor], subset: Optional[Tensor], plan: int,
                       wanted: str) -> List[Tensor]:
    given = _plan_of(plan)._plan.evaluate(_ready(object), _ready(probe), _ready(positions), wanted=wanted.split(), subset=_ready(subset))
    return [given.loss, *(getattr(given, name) for name in wanted.split())]


def _ptychography_fake(object, probe, positions, subset, plan, wanted):
    real = object.dtype.to_real()
    of = {"object": lambda: torch.empty_like(object), "probe": lambda: torch.empty_like(probe),
          "positions": lambda: object.new_empty(positions.shape, dtype=real)}
    return [object.new_empty(1, dtype=torch.float64), *(of[name]() for name in wanted.split())]


def _ptychography_save(ctx, inputs, output):
    ctx.set_materialize_grads(False)
    ctx.wanted = inputs[5].split()
    ctx.save_for_backward(*output[1:])
    ctx.types = [None if tensor is None else tensor.dtype for tensor in inputs[:3]]


def _ptychography_backward(ctx, gradients):
    slope = gradients[0]
    if any(gradient is not None for gradient in gradients[1:]):
        _refuse("PtychographyLoss")(ctx)
    if slope is None:
        return (None,) * 6
    given = dict(zip(ctx.wanted, ctx.saved_tensors))
    result = []
    for name, dtype in zip(("object", "probe", "positions"), ctx.types):
        result.append((given[name] * slope.to(given[name].real.dtype)).to(dtype) if name in given else None)
    return (*result, None, None, None)


_register(_ptychography_loss, _ptychography_fake, _ptychography_backward, _ptychography_save)


class _Loss(Function):
    """The loss, and the gradients that were computed in the same pass."""

    @staticmethod
    def forward(object, probe, positions, subset, pair, wanted):
        return tuple(_ptychography_loss(object, probe, positions, subset, pair._number, " ".join(wanted)))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.subset, ctx.pair, ctx.wanted = inputs[3:]
        ctx.save_for_backward(*output[1:])
        ctx.save_for_forward(*inputs[:3])
        ctx.types = [None if tensor is None else tensor.dtype for tensor in inputs[:3]]

    @staticmethod
    def backward(ctx, slope, *others):
        if any(other is not None for other in others):
            _refuse("PtychographyLoss")(ctx)
        given = dict(zip(ctx.wanted, ctx.saved_tensors))
        result = [(given[name] * slope.to(given[name].real.dtype)).to(dtype) if name in given and slope is not None else None
                  for name, dtype in zip(("object", "probe", "positions"), ctx.types)]
        return (*result, None, None, None)

    @staticmethod
    def jvp(ctx, *tangents):
        inputs, names = ctx.saved_tensors, ("object", "probe", "positions")
        moving = [name for name, tangent in zip(names, tangents) if tangent is not None]
        given = iter(_Loss.apply(*(None if value is None else value.detach() for value in inputs), ctx.subset, ctx.pair, moving)[1:])
        slope = sum((gradient.conj() * tangent.to(gradient.dtype)).real.sum().double()
                    for tangent, gradient in ((tangent, next(given)) for tangent in tangents[:3] if tangent is not None))
        return (slope.reshape(1), *[None] * len(ctx.wanted))

    @staticmethod
    def vmap(info, in_dims, *arguments):
        raise _refused("PtychographyLoss", "vmap")


class PtychographyLoss(_Numbered):
    """`bracewell.PtychographyLoss` as a differentiable function; arguments as there."""

    def __init__(self, patterns: Tensor, positions: Any, object_shape: Sequence[int], probe_size: int, **options):
        if patterns.requires_grad:
            raise _refused("PtychographyLoss", "derivative of patterns")
        self._plan = _ptychography.PtychographyLoss(_ready(patterns), positions, object_shape, probe_size, **options)
        self._enter()

    def __call__(self, object: Tensor, probe: Tensor, positions: Optional[Tensor] = None,
                 subset: Optional[Tensor] = None) -> Tensor:
        """The loss, a float64 tensor without axes, differentiable in object, probe and (where they are refined, float64)
        positions. Gradients are computed in the same pass, for those that require them."""
        wanted = [name for name, tensor in (("object", object), ("probe", probe), ("positions", positions))
                  if tensor is not None and tensor.requires_grad and torch.is_grad_enabled()]
        if torch.compiler.is_compiling():
            return _ptychography_loss(object, probe, positions, subset, self._number, " ".join(wanted))[0][0]
        return _Loss.apply(object, probe, positions, subset, self, wanted)[0][0]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._plan.__reduce_ex__(protocol)  # refuses

    def __repr__(self) -> str:
        return repr(self._plan).replace("bracewell.", "bracewell.torch.", 1)


@torch.library.custom_op("bracewell::aberrated_probe", mutates_args=())
def _aberrated_probe(parameters: Tensor, plan: int) -> Tensor:
    return _plan_of(plan)._plan.evaluate(_ready(parameters))


def _aberrated_probe_fake(parameters, plan):
    side = _plan_of(plan)._plan.probe_size
    return parameters.new_empty((side, side), dtype=parameters.dtype.to_complex())


@torch.library.custom_op("bracewell::aberrated_probe_gradients", mutates_args=())
def _aberrated_probe_gradients(cotangent: Tensor, parameters: Tensor, plan: int) -> Tensor:
    return _plan_of(plan)._plan.gradients(_ready(parameters), _ready(cotangent))


def _aberrated_probe_save(ctx, inputs, output):
    parameters, ctx.plan = inputs
    ctx.keep = _plan_of(ctx.plan)
    ctx.save_for_backward(parameters)


def _aberrated_probe_backward(ctx, cotangent):
    parameters, = ctx.saved_tensors
    return _aberrated_probe_gradients(cotangent, parameters, ctx.plan), None


_register(_aberrated_probe, _aberrated_probe_fake, _aberrated_probe_backward, _aberrated_probe_save)
_register(_aberrated_probe_gradients, lambda cotangent, parameters, plan: torch.empty_like(parameters), _refuse("AberratedProbe"))


class _Lens(Function):
    @staticmethod
    def forward(parameters, lens):
        return _aberrated_probe(parameters, lens._number)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(inputs[0])
        ctx.lens = inputs[1]

    @staticmethod
    def backward(ctx, cotangent):
        if cotangent is None:
            return None, None
        return _LensGradients.apply(cotangent, *ctx.saved_tensors, ctx.lens), None

    @staticmethod
    def jvp(ctx, *tangents):
        raise _refused("AberratedProbe", "forward-mode derivative")

    @staticmethod
    def vmap(info, in_dims, *arguments):
        return _one_by_one(_Lens.apply, info, in_dims, arguments)


class _LensGradients(Function):
    @staticmethod
    def forward(cotangent, parameters, lens):
        return _aberrated_probe_gradients(cotangent, parameters, lens._number)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    backward = staticmethod(_refuse("AberratedProbe"))
    jvp = staticmethod(_refuse("AberratedProbe"))

    @staticmethod
    def vmap(info, in_dims, *arguments):
        return _one_by_one(_LensGradients.apply, info, in_dims, arguments)


class AberratedProbe(_Numbered):
    """`bracewell.AberratedProbe` as a differentiable function; arguments as there::

        lens = bracewell.torch.AberratedProbe(64, 64, wavelength=0.0025, pixel_size=0.02, convergence_angle=0.02)
        optics = torch.tensor([40.0, 1.0, 0.0, 0.0, 0.05], requires_grad=True)
        loss(object, lens(optics)).backward()
        optics.grad  # dL / d(defocus, Cs, astigmatism, its angle, smoothness)
    """

    def __init__(self, probe_size: int, detector: int, **optics: Any):
        self._plan = _ptychography.AberratedProbe(probe_size, detector, **optics)
        self._enter()

    def __call__(self, parameters: Tensor) -> Tensor:
        """The probe, complex ``[m, m]``, of the precision and device of the parameters, real ``[5]``: defocus (a length), Cs,
        astigmatism (a length), its angle from the row axis (radians), smoothness of the aperture's edge. One backward pass."""
        if torch.compiler.is_compiling():
            return _aberrated_probe(parameters, self._number)
        return _Lens.apply(parameters, self)

    def __getstate__(self) -> Any:
        return self._plan

    def __setstate__(self, plan: Any) -> None:
        self._plan = plan
        self._enter()

    def __repr__(self) -> str:
        return repr(self._plan).replace("bracewell.", "bracewell.torch.", 1)


from ._torch_points import insert, project_lines, sample  # noqa: E402 (takes what stands above)
