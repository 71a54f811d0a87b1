"""Record fingerprints of a PyTorch training run with libstraightedge.

    import straightedge
    with straightedge.record("run.{rank}.fp") as r:
        r.hook(model, optimizer)
        train(model, optimizer)

or, for a script that stays as it is:

    python3 -m straightedge -o run.{rank}.fp train.py ARGS...

One fp record for every tensor that enters or leaves a chosen module, for its
parameters and their gradients, and for the optimizer's state, in the order in
which they came to be. `fpdiff A B` compares two such files.

Nothing here synchronises a device: a tensor on an accelerator is fingerprinted
there (mix64, integer operations in the tensor's own stream) and its record is
written once the copy of that number has arrived. Tensors on the CPU get
xxh3-128, or mix64 if asked. What could not be seen is counted in the end
record as lost=.

Needs no build step: ctypes only. torch is imported only if it is used;
`Recorder.tensor` also takes numpy arrays and anything with the buffer protocol.
"""
import collections
import ctypes
import fnmatch
import functools
import inspect
import os
import sys

__all__ = ["record", "Recorder", "fingerprint", "mix64", "version"]


# ---- the library ------------------------------------------------------------

class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("flags", ctypes.c_uint),
                ("tool", ctypes.c_char_p), ("hash", ctypes.c_char_p),
                ("rank", ctypes.c_char_p), ("switches", ctypes.c_char_p),
                ("inputs", ctypes.c_char_p), ("queue", ctypes.c_uint64),
                ("world", ctypes.c_uint64)]


_PLACE = ("step", "mb", "phase", "rank", "dp", "pp", "tp", "ep", "io",
          "dev", "kernel", "storage", "replicated")


class _Place(ctypes.Structure):
    _fields_ = ([("size", ctypes.c_size_t)]
                + [(key, ctypes.c_char_p) for key in _PLACE])


_GZIP, _STATIC = 1, 2
_ERRORS = {-1: "input or output failed", -5: "not supported",
           -6: "out of memory", -7: "wrong argument"}


def _load():
    """The library beside this file: installed, or in a source tree."""
    here = os.path.dirname(os.path.abspath(__file__))
    names = [os.path.join(here, "..", "..", "libstraightedge.so.0"),
             os.path.join(here, "..", "..", "build", "libstraightedge.so"),
             "libstraightedge.so.0"]
    for name in names:
        if "/" not in name or os.path.exists(name):
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
    raise ImportError("straightedge: libstraightedge.so.0 is not beside this "
                      "file (build/ or ../..) and not in the loader's path")


_lib = _load()
_vp, _cp, _u64 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64
_lib.se_version.restype = _cp
_lib.se_mix64.restype = _u64
_lib.se_mix64.argtypes = [_vp, ctypes.c_size_t, _u64]
_lib.se_fingerprint.argtypes = [_cp, _vp, ctypes.c_size_t, _cp,
                                ctypes.c_size_t]
_lib.se_stream_open.argtypes = [ctypes.POINTER(_vp), _cp,
                                ctypes.POINTER(_Options)]
# Plain pointers: ctypes checks typed ones on every call.
_lib.se_stream_tensor.argtypes = [_vp, _cp, _cp, ctypes.c_uint, _vp, _vp, _u64,
                                  _cp, _vp]
_lib.se_stream_scalar.argtypes = [_vp, _cp, _cp, _cp, ctypes.POINTER(_Place)]
_lib.se_stream_lost.argtypes = [_vp, _u64]
_lib.se_stream_dropped.argtypes = [_vp]
_lib.se_stream_dropped.restype = _u64
_lib.se_stream_close.argtypes = [_vp]


def _check(code, what):
    if code < 0:
        raise OSError(f"straightedge: {what}: "
                      f"{_ERRORS.get(code, f'error {code}')}")
    return code


def version():
    """The version of the library that was loaded."""
    return _lib.se_version().decode()


def _bytes_of(data):
    """A contiguous byte view of anything with the buffer protocol."""
    view = memoryview(data)
    if not view.c_contiguous:
        view = memoryview(view.tobytes())
    return view.cast("B") if view.nbytes else memoryview(b"")


def _address(view):
    if not view.nbytes:
        return None
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(view))
    except TypeError:  # read-only: numpy's own pointer needs no copy
        import numpy
        return numpy.frombuffer(view, dtype=numpy.uint8).ctypes.data


def fingerprint(data, algorithm="xxh3-128"):
    """Fingerprint text of a bytes-like object."""
    view, text = _bytes_of(data), ctypes.create_string_buffer(64)
    _check(_lib.se_fingerprint(algorithm.encode(), _address(view),
                               view.nbytes, text, 64), algorithm)
    return text.value.decode()


# ---- mix64 on the tensor's own device ---------------------------------------

def _signed(x):
    return x - (1 << 64) if x >> 63 else x


_K, _M1, _M2 = (_signed(x) for x in (0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9,
                                     0x94d049bb133111eb))


def _shift(torch, x, n):
    """Logical shift right of int64 seen as uint64."""
    return torch.bitwise_and(torch.bitwise_right_shift(x, n),
                             (1 << (64 - n)) - 1)


def mix64(tensor):
    """mix64 of a torch tensor as a 0-d int64 tensor on the same device.

    Bit-equal to se_mix64 of the tensor's bytes; no synchronisation.
    """
    import torch
    flat = tensor.detach().contiguous().view(-1)
    if not flat.numel():
        return torch.zeros((), dtype=torch.int64, device=tensor.device)
    if flat.is_complex():
        flat = torch.view_as_real(flat.resolve_conj()).reshape(-1)
    flat = flat.view(torch.uint8)
    tail = flat.numel() % 8
    if tail or flat.storage_offset() % 8:
        flat = torch.nn.functional.pad(flat, (0, (8 - tail) % 8))
    word = flat.view(torch.int64)
    index = torch.arange(word.numel(), dtype=torch.int64, device=word.device)
    x = torch.bitwise_xor(word, index * _K)
    x = torch.bitwise_xor(x, _shift(torch, x, 30)) * _M1
    x = torch.bitwise_xor(x, _shift(torch, x, 27)) * _M2
    x = torch.bitwise_xor(x, _shift(torch, x, 31))
    return x.sum()


# ---- what a torch tensor is called ------------------------------------------

_DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
    "float8_e4m3fnuz": "e4m3fnuz", "float8_e5m2fnuz": "e5m2fnuz",
    "float8_e8m0fnu": "e8m0", "complex32": "c32", "complex64": "c64",
    "complex128": "c128", "int64": "i64", "int32": "i32", "int16": "i16",
    "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16",
    "uint8": "u8", "bool": "bool",
}


def _dtype_name(dtype):
    """Canonical name of a torch or numpy dtype, or None."""
    return _DTYPES.get(str(dtype).replace("torch.", ""))


def _tensors_in(value, name, depth=0):
    """(name, tensor) for every tensor in a nested value; None: not seen."""
    import torch
    if isinstance(value, torch.Tensor):
        yield name, value
    elif value is None or isinstance(value, (bool, int, float, str)):
        return
    elif depth > 8:
        yield name, None
    elif isinstance(value, collections.abc.Mapping):
        for key, item in value.items():
            yield from _tensors_in(item, f"{name}.{key}", depth + 1)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _tensors_in(item, f"{name}.{i}", depth + 1)
    elif hasattr(value, "__dataclass_fields__"):
        for key in value.__dataclass_fields__:
            yield from _tensors_in(getattr(value, key), f"{name}.{key}",
                                   depth + 1)
    else:
        yield name, None


def _switches():
    """The reproducibility switches of this process, for the head record."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    return ",".join([
        f"torch={torch.__version__}",
        f"deterministic={int(torch.are_deterministic_algorithms_enabled())}",
        f"cudnn.benchmark={int(torch.backends.cudnn.benchmark)}",
        f"cudnn.deterministic={int(torch.backends.cudnn.deterministic)}",
        f"threads={torch.get_num_threads()}"])


def _rank():
    """The rank from torch.distributed, else what its launcher set, or None."""
    torch = sys.modules.get("torch")
    dist = getattr(torch, "distributed", None)
    if dist and dist.is_available() and dist.is_initialized():
        return str(dist.get_rank())
    return os.environ.get("RANK")


def _world():
    """How many ranks the job has, from where its rank is known; 0: unknown."""
    torch = sys.modules.get("torch")
    dist = getattr(torch, "distributed", None)
    if dist and dist.is_available() and dist.is_initialized():
        return dist.get_world_size()
    world = os.environ.get("WORLD_SIZE", "")
    return int(world) if world.isdecimal() else 0


# ---- the recorder -----------------------------------------------------------

_SITES_MAX = 1 << 16  # names may come from the keys of what a module returns


class _Site:
    """What stays the same of a boundary that a hook sees in every step.

    `form` is what the tensor was like the last time: torch's dtype and shape,
    then the same as the library takes them. It is replaced as a whole, since
    threads may share a site.
    """
    __slots__ = ("name", "keys", "place", "at", "form")

    def __init__(self, name, keys, place):
        self.name = name.encode("utf-8", "surrogateescape")
        self.keys, self.place = keys, place
        self.at, self.form = ctypes.addressof(place), (None,) * 6


class _Forms:
    """The parts of torch that are asked for every tensor."""

    def __init__(self, torch):
        self.strided, self.tensor = torch.strided, torch.Tensor
        self.with_kwargs = "with_kwargs" in inspect.signature(
            torch.nn.Module.register_forward_pre_hook).parameters

    @staticmethod
    def of(t):
        """The form of a tensor whose bytes can be taken as they are."""
        dtype, nbytes = _dtype_name(t.dtype), t.numel() * t.element_size()
        if dtype is None or not nbytes or t.is_complex():
            return None
        shape = t.shape
        dims = (_u64 * max(len(shape), 1))(*shape)
        return t.dtype, shape, dtype.encode(), len(shape), dims, nbytes


def _keywords():
    """The keyword arguments of the module call that runs our hook.

    torch < 2.0 does not hand them to hooks: they are looked up in its frame,
    above _before and before.
    """
    return sys._getframe(3).f_locals.get("kwargs") or {}


class Recorder:
    """An open stream. Use `record`; close it, or use it in a `with`."""

    def __init__(self, path, rank=None, coordinates=None, algorithm="auto",
                 compress=False, static=False, queue=0, inputs=None):
        """`path` may hold {rank}; None is where STRAIGHTEDGE_SIG says, the
        file in which `gpureplay run` looks. `coordinates`: dp, pp, tp, ep.

        `algorithm`: "xxh3-128" or "mix64" for all tensors; "auto" takes
        xxh3-128 for those on the CPU and mix64 elsewhere. `static` leaves time
        and host out, so that equal runs give equal files. inputs="replicated"
        says that every rank is fed the same, so that all its boundaries must
        agree (`fpdiff --across`).
        """
        rank = _rank() if rank is None else str(rank)
        if algorithm not in ("auto", "xxh3-128", "mix64"):
            raise ValueError(f"unknown algorithm {algorithm!r}")
        self.algorithm = algorithm
        self._step_text = ctypes.create_string_buffer(24)
        self._step_at = ctypes.cast(self._step_text, _cp)
        self.step = 0
        self.rank, self._where = rank, dict(coordinates or {})
        if path is not None:
            path = str(path).replace("{rank}", rank or "0")
        self.path = path or os.environ.get("STRAIGHTEDGE_SIG", "")
        self._handles, self._undo = [], []
        self._waiting = collections.deque()  # records behind a device copy
        self._sites, self._forms = {}, None
        switches = _switches()
        options = _Options(
            size=ctypes.sizeof(_Options), queue=queue, tool=b"straightedge.py",
            flags=(_GZIP if compress else 0) | (_STATIC if static else 0),
            hash=b"mix64" if algorithm == "mix64" else b"xxh3-128",
            rank=rank.encode() if rank is not None else None,
            switches=switches.encode() if switches else None,
            inputs=inputs.encode() if inputs else None,
            world=_world() if rank is not None else 0)
        self._stream = _vp()
        self._pid = os.getpid()
        _check(_lib.se_stream_open(ctypes.byref(self._stream),
                                   os.fsencode(path) if path else None,
                                   ctypes.byref(options)), self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def step(self):
        """The step of the next record; hooks count it up."""
        return self._step

    @step.setter
    def step(self, step):
        self._step = step
        self._step_text.value = str(step).encode()

    # -- records

    def _place(self, keys):
        place = _Place(size=ctypes.sizeof(_Place))
        for key, value in {"step": self.step, **self._where, **keys}.items():
            if value is not None:
                setattr(place, key, str(value).encode())
        return place

    def _put(self, name, dtype, shape, address, nbytes, text, place):
        dims = (_u64 * max(len(shape), 1))(*shape)
        _check(_lib.se_stream_tensor(
            self._stream, name.encode("utf-8", "surrogateescape"),
            dtype.encode(), len(shape), dims, address, nbytes,
            text.encode() if text else None, ctypes.byref(place)), name)

    def lost(self, n=1):
        """Counts boundaries that could not be recorded."""
        _check(_lib.se_stream_lost(self._stream, n), "lost")

    def scalar(self, name, value, **keys):
        """A value that is not a tensor: loss, learning rate, seed."""
        kind = ("bool" if isinstance(value, bool) else
                "i64" if isinstance(value, int) else
                "f64" if isinstance(value, float) else "text")
        text = repr(value) if kind == "f64" else str(value)
        place = self._place(keys)
        self._when_ready(lambda: _check(_lib.se_stream_scalar(
            self._stream, name.encode(), kind.encode(), text.encode(),
            ctypes.byref(place)), name))

    def tensor(self, name, value, **keys):
        """One boundary: a torch tensor, numpy array or buffer.

        Keys: io, phase, step, mb, dp, pp, tp, ep, dev, kernel, replicated.
        """
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            self._torch(torch, name, value, keys)
            return
        view = memoryview(value)
        dtype = _dtype_name(getattr(value, "dtype", "uint8"))
        if dtype is None:
            self.lost()
            return
        shape, data = view.shape, _bytes_of(value)
        place, address = self._place(keys), _address(data)
        text = (fingerprint(data, "mix64") if self.algorithm == "mix64"
                else None)
        if self._waiting and text is None:
            text = fingerprint(data)
        self._when_ready(lambda: self._put(name, dtype, shape, address,
                                           data.nbytes, text, place))

    def _torch(self, torch, name, value, keys):
        dtype = _dtype_name(value.dtype)
        if (dtype is None or value.layout != torch.strided or value.is_meta
                or value.is_quantized):
            self.lost()
            return
        value = value.detach()
        value = value.resolve_conj().resolve_neg().contiguous()
        shape = tuple(value.shape)
        nbytes = value.numel() * value.element_size()
        place = self._place(keys)
        on_cpu = value.device.type == "cpu"
        if on_cpu and self.algorithm != "mix64" and not self._waiting:
            self._put(name, dtype, shape, value.data_ptr() or None, nbytes,
                      None if nbytes else fingerprint(b""), place)
            return
        if on_cpu:
            data = (ctypes.c_char * nbytes).from_address(value.data_ptr()) \
                if nbytes else b""
            text = fingerprint(data, "mix64" if self.algorithm == "mix64"
                               else "xxh3-128")
            self._when_ready(lambda: self._put(name, dtype, shape, None,
                                               nbytes, text, place))
            return
        if self.algorithm == "xxh3-128":
            self.lost()  # would need a synchronising copy
            return
        self._on_device(torch, name, dtype, shape, nbytes, mix64(value), place)

    # -- records of hooks: the same boundaries again and again

    def _site(self, name, io, phase, replicated=None):
        key = name, io, phase, replicated
        site = self._sites.get(key)
        if site is None:
            keys = {"io": io, "phase": phase, "replicated": replicated}
            place = self._place(keys)
            place.step = self._step_at  # follows self.step
            if len(self._sites) == _SITES_MAX:
                self._sites.clear()
            site = self._sites[key] = _Site(name, keys, place)
        return site

    def _at_site(self, site, value):
        """Like tensor(); what has the form of the last time goes straight."""
        if self._waiting or not self._stream:
            return self._slowly(site, value)
        form = site.form
        if value.dtype is not form[0] or value.shape != form[1]:
            form = site.form = self._forms.of(value) or (None,) * 6
        if (form[0] is None or value.layout is not self._forms.strided
                or value.device.type != "cpu" or not value.is_contiguous()
                or value.is_neg()):
            return self._slowly(site, value)
        _, _, dtype, ndim, dims, nbytes = form
        code = _lib.se_stream_tensor(
            self._stream, site.name, dtype, ndim, dims, value.data_ptr(),
            nbytes, None, site.at)
        if code < 0:
            _check(code, site.name.decode("utf-8", "replace"))

    def _slowly(self, site, value):
        if self._stream:
            self.tensor(site.name.decode("utf-8", "surrogateescape"), value,
                        **site.keys)

    # -- records whose fingerprint is still on a device

    def _on_device(self, torch, name, dtype, shape, nbytes, number, place):
        here = torch.empty((), dtype=torch.int64,
                           pin_memory=number.is_cuda)
        here.copy_(number, non_blocking=True)
        event = None
        if number.is_cuda:
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(number.device))

        def emit():
            text = f"mix64:{int(here) & (1 << 64) - 1:016x}"
            self._put(name, dtype, shape, None, nbytes, text, place)
        self._waiting.append((event, emit))
        self._drain(wait=False)

    def _when_ready(self, emit):
        """Keeps the order: behind records that still wait for a device."""
        if not self._waiting:
            emit()
            return
        self._waiting.append((None, emit))
        self._drain(wait=False)

    def _drain(self, wait):
        while self._waiting:
            event, emit = self._waiting[0]
            if event is not None and not wait and not event.query():
                return
            if event is not None and wait:
                event.synchronize()
            self._waiting.popleft()
            emit()

    # -- hooks

    def hook(self, model, *optimizers, modules="*", inputs=True, outputs=True,
             parameters=True, gradients=True, prefix="", replicated=None):
        """Records the boundaries of the modules that match a GLOB (or list).

        Per step, in execution order: inputs and parameters of a module before
        it runs, outputs after, gradients of its outputs and parameters in the
        backward pass; with optimizers their state and the new parameters.
        Each optimizer.step() begins the next step. replicated="dp" says that
        parameters and optimizer state are the same in all replicas, although
        each is fed its own batch (`fpdiff --across dp`).
        """
        self._torch_forms()
        globs = [modules] if isinstance(modules, str) else list(modules)
        named = [(prefix + name, m) for name, m in model.named_modules()
                 if any(fnmatch.fnmatchcase(name, g) for g in globs)
                 and (name or len(list(model.children())) == 0)]
        for name, module in named:
            self._hook_module(name or type(module).__name__, module, inputs,
                              outputs, parameters, gradients, replicated)
        if gradients:
            for name, p in model.named_parameters(prefix=prefix.rstrip(".")):
                if p.requires_grad:
                    self._handles.append(self._hook_gradient(name, p))
        names = {id(p): prefix + n for n, p in model.named_parameters()}
        for optimizer in optimizers:
            self.hook_optimizer(optimizer, names, replicated)
        return self

    def _values(self, name, value, io, phase):
        if isinstance(value, self._forms.tensor):
            self._at_site(self._site(name, io, phase), value)
            return
        for label, tensor in _tensors_in(value, name):
            if tensor is None:
                self.lost()
            else:
                self._at_site(self._site(label, io, phase), tensor)

    def _hook_module(self, name, module, inputs, outputs, parameters,
                     gradients, replicated):
        # Functions, not bound methods: a hooked model can still be copied.
        def before(mod, args, kwargs=None):
            self._before(name, inputs, parameters, replicated, mod, args,
                         kwargs)

        def after(mod, _args, result):
            self._after(name, outputs, gradients, mod, result)

        if inputs or parameters:
            options = {"with_kwargs": True} if self._forms.with_kwargs else {}
            self._handles.append(
                module.register_forward_pre_hook(before, **options))
        if outputs or gradients:
            self._handles.append(module.register_forward_hook(after))

    def _before(self, name, inputs, parameters, replicated, module, args,
                kwargs):
        phase = "fwd" if module.training else "eval"
        if inputs:
            self._values(name, args[0] if len(args) == 1 else args, "in",
                         phase)
            kwargs = _keywords() if kwargs is None else kwargs
            for key, value in kwargs.items():
                self._values(f"{name}.{key}", value, "in", phase)
        if not parameters:
            return
        # Buffers are read like parameters: running means and the like.
        for kind in module._parameters, module._buffers:
            for key, p in kind.items():
                if p is not None:
                    self._at_site(self._site(f"{name}.{key}", "param", phase,
                                             replicated), p)

    def _after(self, name, outputs, gradients, module, result):
        phase = "fwd" if module.training else "eval"
        if outputs:
            self._values(name, result, "out", phase)
        if not gradients:
            return
        for label, t in _tensors_in(result, name):
            if t is not None and t.requires_grad:
                self._hook_gradient(label, t)

    def _hook_gradient(self, name, tensor):
        site = self._site(name, "grad", "bwd")
        return tensor.register_hook(functools.partial(self._at_site, site))

    def hook_optimizer(self, optimizer, names=None, replicated=None):
        """Records state and new parameters after each step of an optimizer."""
        self._torch_forms()
        names, plain = names or {}, optimizer.step
        order = [p for group in optimizer.param_groups
                 for p in group["params"]]
        label = {id(p): names.get(id(p), f"param.{i}")
                 for i, p in enumerate(order)}

        def step(*args, **kwargs):
            result = plain(*args, **kwargs)
            for p in order:
                if p.grad is None:
                    continue
                name = label[id(p)]
                for key, value in optimizer.state.get(p, {}).items():
                    self._state(f"{name}.{key}", value, replicated)
                self._at_site(self._site(name, "param", "opt", replicated), p)
            self.next_step()
            return result

        optimizer.step = step
        self._undo.append(lambda: optimizer.__dict__.pop("step", None))

    def _state(self, name, value, replicated):
        if isinstance(value, self._forms.tensor):
            self._at_site(self._site(name, "state", "opt", replicated), value)
        elif isinstance(value, (bool, int, float)):
            self.scalar(name, value, io="state", phase="opt")

    def _torch_forms(self):
        if self._forms is None:
            import torch
            self._forms = _Forms(torch)

    def operators(self):
        """A context in which the outputs of every operator are recorded.

        Much finer and much dearer than `hook`: for a step that is already
        under suspicion.
        """
        from torch.utils._python_dispatch import TorchDispatchMode
        recorder = self
        recorder._torch_forms()

        class Operators(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                recorder._values(str(func), result, "out", "op")
                return result

        return Operators()

    def next_step(self):
        """Begins the next step; optimizer.step() does it by itself."""
        self.step += 1
        self._drain(wait=False)

    def close(self):
        """Removes the hooks, waits for what is on a device, ends the stream."""
        if not self._stream:
            return
        for handle in self._handles:
            handle.remove()
        for undo in self._undo:
            undo()
        stream, self._handles, self._undo = self._stream, [], []
        if os.getpid() == self._pid:
            self._drain(wait=True)
        self._stream = None
        _check(_lib.se_stream_close(stream), self.path)


def record(path=None, **options):
    """Opens a Recorder: see there for the options."""
    return Recorder(path, **options)


# ---- unchanged scripts ------------------------------------------------------

class _Auto:
    """Hooks every model and optimizer that a script makes."""

    def __init__(self, open_recorder):
        self.open, self.recorder = open_recorder, None
        self.known = set()

    def get(self):
        # As late as the first boundary: then the rank is known.
        if self.recorder is None:
            self.recorder = self.open()
        return self.recorder

    def install(self):
        import torch
        call, init = torch.nn.Module.__call__, torch.optim.Optimizer.__init__
        depth = [0]

        def module_call(module, *args, **kwargs):
            if depth[0] == 0 and id(module) not in self.known:
                for m in module.modules():
                    self.known.add(id(m))
                self.get().hook(module)
            depth[0] += 1
            try:
                return call(module, *args, **kwargs)
            finally:
                depth[0] -= 1

        def optimizer_init(optimizer, *args, **kwargs):
            init(optimizer, *args, **kwargs)
            self.late(optimizer)

        torch.nn.Module.__call__ = module_call
        torch.optim.Optimizer.__init__ = optimizer_init

    def late(self, optimizer):
        """Hooks the optimizer at its first step, when all is in place."""
        plain = optimizer.step

        def first(*args, **kwargs):
            optimizer.__dict__.pop("step", None)
            self.get().hook_optimizer(optimizer)
            return optimizer.step(*args, **kwargs)

        del plain
        optimizer.step = first


def main(argv=None):
    """python3 -m straightedge -o run.{rank}.fp SCRIPT ARGS..."""
    import argparse
    import runpy
    p = argparse.ArgumentParser(prog="python3 -m straightedge",
                                description=main.__doc__)
    p.add_argument("-o", "--output", metavar="FILE",
                   help="stream to write; {rank} becomes the rank (default: "
                        "where STRAIGHTEDGE_SIG says)")
    p.add_argument("-z", "--compress", action="store_true")
    p.add_argument("--hash", default="auto",
                   choices=("auto", "xxh3-128", "mix64"))
    p.add_argument("script")
    p.add_argument("args", nargs=argparse.REMAINDER)
    a = p.parse_args(argv)
    if not a.output and not os.environ.get("STRAIGHTEDGE_SIG"):
        p.error("-o FILE, or STRAIGHTEDGE_SIG in the environment")
    auto = _Auto(lambda: Recorder(a.output, compress=a.compress,
                                  algorithm=a.hash))
    auto.install()
    sys.argv = [a.script] + a.args
    sys.path[0] = os.path.dirname(os.path.abspath(a.script))
    try:
        runpy.run_path(a.script, run_name="__main__")
    finally:
        if auto.recorder is not None:
            auto.recorder.close()
    if auto.recorder is None:
        sys.exit("straightedge: the script called no torch module: nothing "
                 "was recorded")


if __name__ == "__main__":
    main()
