"""Stacks that ranks of a training script would show, with the frames of torch around the script's.

Line numbers are plausible and no more; what the server reads from them are files and functions.
"""

from __future__ import annotations

from functools import cache

from hangwatch_agent import wire

_LIBRARY = "/usr/lib/python3.11"
_TORCH = "/opt/venv/lib/python3.11/site-packages/torch"
_OWN = "/workspace/gpt/"
Place = tuple[str, str, int]  # function, file, line


def _own(function: str, file: str, line: int) -> Place:
    return function, _OWN + file, line


_ENTRY = (
    _own("train", "train.py", 88),
    _own("main", "train.py", 131),
    _own("<module>", "train.py", 140),
)
_STEP = (_own("train_step", "loop.py", 61), *_ENTRY)
_MODULE = (
    ("_call_impl", f"{_TORCH}/nn/modules/module.py", 1784),
    ("_wrapped_call_impl", f"{_TORCH}/nn/modules/module.py", 1773),
)
_SYNCHRONISE = ("synchronize", f"{_TORCH}/cuda/__init__.py", 1083)
# Where a rank waits for its GPU to be through with a collective, by the group's axis and the op.
_WAITS: dict[tuple[str, str], Place] = {
    ("dp", "all_gather"): _own("unshard", "sharding.py", 112),
    ("dp", "reduce_scatter"): _own("reduce_gradients", "sharding.py", 147),
    ("tp", "all_reduce"): _own("reduce_partial_sums", "layers.py", 58),
    ("pp", "all_reduce"): _own("finish_microbatches", "pipeline.py", 203),
    ("world", "all_reduce"): _own("reduce_loss", "loop.py", 97),
    ("pair", "all_reduce"): _own("exchange_halo", "halo.py", 41),
}
_WORK: tuple[tuple[Place, ...], ...] = (
    (("forward", f"{_TORCH}/nn/modules/linear.py", 134), *_MODULE, _own("forward", "layers.py", 44),
     *_MODULE, _own("forward", "model.py", 90), *_MODULE, *_STEP),
    (("_engine_run_backward", f"{_TORCH}/autograd/graph.py", 841),
     ("backward", f"{_TORCH}/autograd/__init__.py", 354), ("backward", f"{_TORCH}/_tensor.py", 625),
     *_STEP),
    (("step", f"{_TORCH}/optim/adamw.py", 220), ("wrapper", f"{_TORCH}/optim/optimizer.py", 516),
     _own("optimizer_step", "loop.py", 74), *_STEP),
)  # fmt: skip
_NEXT_BATCH = (
    ("select", f"{_LIBRARY}/selectors.py", 415),
    ("wait", f"{_LIBRARY}/multiprocessing/connection.py", 930),
    ("_poll", f"{_LIBRARY}/multiprocessing/connection.py", 424),
    ("poll", f"{_LIBRARY}/multiprocessing/connection.py", 257),
    ("get", f"{_LIBRARY}/multiprocessing/queues.py", 113),
    ("_try_get_data", f"{_TORCH}/utils/data/dataloader.py", 1275),
    ("_get_data", f"{_TORCH}/utils/data/dataloader.py", 1444),
    ("_next_data", f"{_TORCH}/utils/data/dataloader.py", 1485),
    ("__next__", f"{_TORCH}/utils/data/dataloader.py", 734),
    _own("next_batch", "data.py", 77),
    *_ENTRY,
)
_LOADER = (
    _own("read_shard", "storage.py", 41),
    _own("__getitem__", "dataset.py", 29),
    ("fetch", f"{_TORCH}/utils/data/_utils/fetch.py", 52),
    ("_worker_loop", f"{_TORCH}/utils/data/_utils/worker.py", 349),
    ("run", f"{_LIBRARY}/multiprocessing/process.py", 108),
    ("_bootstrap", f"{_LIBRARY}/multiprocessing/process.py", 314),
    ("_main", f"{_LIBRARY}/multiprocessing/spawn.py", 135),
    ("spawn_main", f"{_LIBRARY}/multiprocessing/spawn.py", 122),
)
_PINNING = (
    ("do_one_step", f"{_TORCH}/utils/data/_utils/pin_memory.py", 35),
    ("_pin_memory_loop", f"{_TORCH}/utils/data/_utils/pin_memory.py", 60),
    ("run", f"{_LIBRARY}/threading.py", 982),
    ("_bootstrap_inner", f"{_LIBRARY}/threading.py", 1045),
    ("_bootstrap", f"{_LIBRARY}/threading.py", 1002),
)


# What the script's lines say: the line before, the line itself, the line after.
_TEXTS: dict[tuple[str, int], tuple[str, str, str]] = {
    ("storage.py", 41): (
        "def read_shard(self, shard: Shard) -> bytes:",
        "    return self.session.get(shard.url).content",
        "",
    ),
    ("dataset.py", 29): (
        "def __getitem__(self, index: int) -> Tensor:",
        "    data = self.storage.read_shard(self.shards[index])",
        "    return decode(data)",
    ),
    ("data.py", 77): (
        "def next_batch(batches: Iterator[Batch]) -> Batch:",
        "    return next(batches)",
        "",
    ),
    ("train.py", 88): (
        "for step in range(start, steps):",
        "    loss = train_step(model, next_batch(batches))",
        "    hangwatch.step(step)",
    ),
    ("train.py", 131): ("model = build(arguments)", "train(model, arguments)", ""),
    ("loop.py", 97): (
        "with torch.no_grad():",
        "    dist.all_reduce(loss)",
        "    loss /= world_size",
    ),
    ("layers.py", 58): ("partial = self.rows(hidden)", "dist.all_reduce(partial, group=tp)", ""),
    ("sharding.py", 112): ("shard = self.shards[name]", "dist.all_gather(full, shard, dp)", ""),
    ("sharding.py", 147): ("for name, full in gradients:", "    reduce_scatter(full, dp)", ""),
    ("pipeline.py", 203): ("done = torch.ones(1)", "dist.all_reduce(done, group=pp)", ""),
    ("halo.py", 41): ("edge = field[..., -1]", "dist.all_reduce(edge, group=pair)", ""),
}


def sources(stacks: tuple[wire.ProcessStacks, ...]) -> tuple[wire.Source, ...]:
    """What the script says where these stacks stand, as an agent reads it."""
    frames = [frame for process in stacks for frame in process.threads[0].frames]
    standing = dict.fromkeys((frame.file, frame.line) for frame in frames)
    return tuple(
        wire.Source(file=file, line=line, first=line - 1, lines=text)
        for file, line in standing
        if (text := _TEXTS.get((file.removeprefix(_OWN), line))) is not None
    )


def waiting(axis: str, op: str) -> tuple[Place, ...]:
    """A rank whose GPU is inside a collective of a group of this axis."""
    return (_SYNCHRONISE, _WAITS[axis, op], *_STEP)


def working(number: int) -> tuple[Place, ...]:
    """A rank between two collectives; `number` chooses what it computes."""
    return _WORK[number % len(_WORK)]


def loading() -> tuple[Place, ...]:
    """A rank that waits for its loader worker."""
    return _NEXT_BATCH


def processes(pid: int, main: tuple[Place, ...], worker: int) -> tuple[wire.ProcessStacks, ...]:
    """A rank's process and its loader worker as py-spy gives them."""
    threads = (
        wire.Thread(pid=pid, thread_id=pid, name="MainThread", frames=_frames(main)),
        wire.Thread(
            pid=pid,
            thread_id=pid + 1,
            name="Thread-1 (_pin_memory_loop)",
            frames=_frames(_PINNING),
        ),
    )
    own = wire.Thread(pid=worker, thread_id=worker, name="MainThread", frames=_frames(_LOADER))
    return (
        wire.ProcessStacks(pid=pid, role="main", threads=threads),
        wire.ProcessStacks(pid=worker, role="loader", threads=(own,)),
    )


@cache  # a few stacks serve all ranks
def _frames(places: tuple[Place, ...]) -> tuple[wire.Frame, ...]:
    return tuple(wire.Frame(name=name, file=file, line=line) for name, file, line in places)
