"""Which function of which file shows which activity: the tables behind `activity`, nothing else.

Names are those of torch 2.13 and of the standard library of Python 3.11; older names that still
occur in the field are kept beside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hangwatch_server.model import Activity

C10D = "torch/distributed/distributed_c10d.py"

OPS = frozenset(
    {
        "all_reduce", "all_reduce_coalesced", "all_gather", "all_gather_into_tensor",
        "all_gather_object", "all_gather_coalesced", "reduce_scatter", "reduce_scatter_tensor",
        "broadcast", "broadcast_object_list", "reduce", "gather", "gather_object", "scatter",
        "scatter_object_list", "all_to_all", "all_to_all_single", "barrier", "monitored_barrier",
        "send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list",
        "recv_object_list", "_coalescing_manager", "_all_gather_base", "_reduce_scatter_base",
    }
)  # fmt: skip
RENDEZVOUS = frozenset(
    {
        "init_process_group", "new_group", "new_subgroups", "new_subgroups_by_enumeration",
        "_new_group_with_tag", "_new_process_group_helper", "_store_based_barrier", "split_group",
    }
)  # fmt: skip
# Blocking C++ collectives that DistributedDataParallel and FSDP issue without distributed_c10d.
_HIDDEN_OPS = frozenset(
    {
        "_sync_module_states", "_sync_params_and_buffers", "_verify_param_shape_across_processes",
        "_sync_buffers", "_broadcast_coalesced", "_distributed_broadcast_coalesced",
    }
)  # fmt: skip
_SHUTDOWN = frozenset({"_shutdown", "_exit_function", "_python_exit", "destroy_process_group"})
# In the stack whenever compiled code runs, long after it was compiled.
_RUNTIME_PATH = re.compile(
    r"torch/_dynamo/(eval_frame|decorators|external_utils|hooks|utils)\.py$"
    r"|torch/_inductor/(output_code|utils|cudagraph_trees|cudagraph_utils)\.py$"
)
_COMPILE_PATH = re.compile(
    r"torch/(_inductor|_dynamo|_functorch/_aot_autograd)/|torch/utils/cpp_extension\.py$"
    r"|triton/(compiler|backends)/"
)
_GPU_WAITS = frozenset({"synchronize", "wait_stream", "wait_event", "current_stream_synchronize"})
_GPU_PATHS = ("torch/cuda/", "torch/accelerator/", "torch/xpu/", "torch/mps/", "torch/npu/")
_AUTOTUNE = frozenset(
    {"autotune_to_one_config", "benchmark_all_configs", "coordinate_descent_tuning"}
)
_SAVE_NAME = re.compile(r"checkpoint|ckpt", re.IGNORECASE)
_NOT_SAVE_NAME = re.compile(
    r"checkpointed|activation|forward|backward|load|restore|resume|read|recompute|with_checkpoint",
    re.IGNORECASE,
)
_LOAD_NAME = re.compile(
    r"^_*((load|restore|resume|read)_\w*(checkpoint|ckpt|model|weights|state_dict)\w*|from_pretrained)$",
    re.IGNORECASE,
)
# A whole name, so that a script's `train_and_evaluate` does not make all of training an evaluation.
_EVAL_NAME = re.compile(
    r"^_*(run_|do_)?(eval|evaluate|evaluation|validate|validation)(_(loop|epoch|step|model|all|dataset))?$"
)


# Packages that train on the user's behalf: the names of their functions tell as the user's own do.
_TRAINERS = re.compile(
    r"(^|/)(transformers|accelerate|deepspeed|lightning|pytorch_lightning|lightning_fabric|composer"
    r"|megatron|nemo|torchtitan|torchtune|fairseq2?)/"
)
_TRAINER_SAVES = re.compile(r"^_?save_(model|state|pretrained|optimizer\w*|checkpoint\w*)$")
_LOADERS = re.compile(r"(^|/)(nvidia/dali|webdataset|petastorm|ffcv|torchdata)/")


@dataclass(frozen=True, slots=True)
class Rule:
    """A frame that shows `activity`; one that `is_outer` may have user code further in."""

    activity: Activity
    matches: Callable[[str, str], bool]  # (file, bare function name)
    is_outer: bool = False


def _in(path: str) -> Callable[[str, str], bool]:
    return lambda file, name: path in file


def _named(path: str, names: frozenset[str]) -> Callable[[str, str], bool]:
    return lambda file, name: path in file and name in names


def _compiles(file: str, name: str) -> bool:
    if "torch/_inductor/runtime/" in file or "triton/runtime/" in file:
        return name in _AUTOTUNE or name in {"compile", "_do_compile", "precompile"}
    return bool(_COMPILE_PATH.search(file)) and not _RUNTIME_PATH.search(file)


def _waits_for_gpu(file: str, name: str) -> bool:
    return name in _GPU_WAITS and any(path in file for path in _GPU_PATHS)


def _loads(file: str, name: str) -> bool:
    if "torch/serialization.py" in file or "safetensors/" in file:
        return name in {"load", "_load", "_legacy_load", "load_file", "load_model", "safe_open"}
    if "torch/distributed/checkpoint/" in file:
        return "load" in name
    return "transformers/modeling_utils.py" in file and name == "from_pretrained"


def _saves(file: str, name: str) -> bool:
    if "torch/serialization.py" in file or "safetensors/" in file:
        return name in {"save", "_save", "_legacy_save", "save_file", "save_model"}
    return "torch/distributed/checkpoint/" in file or "/fsspec/" in f"/{file}"


FRAMEWORK_RULES: tuple[Rule, ...] = (
    Rule(Activity.COLLECTIVE, _named(C10D, OPS)),
    Rule(Activity.COLLECTIVE, _in("torch/distributed/_functional_collectives")),
    Rule(Activity.COLLECTIVE, _named("torch/", _HIDDEN_OPS)),
    Rule(Activity.GPU, _waits_for_gpu),
    Rule(Activity.RENDEZVOUS, _named(C10D, RENDEZVOUS)),
    Rule(Activity.RENDEZVOUS, _in("torch/distributed/rendezvous.py")),
    Rule(Activity.RENDEZVOUS, _in("torch/distributed/elastic/rendezvous/")),
    Rule(Activity.SHUTDOWN, _named(C10D, _SHUTDOWN)),
    Rule(Activity.SHUTDOWN, _named("threading.py", _SHUTDOWN), is_outer=True),
    Rule(Activity.SHUTDOWN, _named("multiprocessing/util.py", _SHUTDOWN), is_outer=True),
    Rule(Activity.SHUTDOWN, _named("concurrent/futures/", _SHUTDOWN), is_outer=True),
    Rule(Activity.MODEL_LOADING, _loads, is_outer=True),
    Rule(Activity.CHECKPOINT, _saves, is_outer=True),
    Rule(Activity.COMPILE, _compiles, is_outer=True),
    Rule(Activity.DATALOADER, _in("torch/utils/data/"), is_outer=True),
    Rule(Activity.DATALOADER, lambda file, name: bool(_LOADERS.search(file)), is_outer=True),
)

# Waits for a child process, told by the Python code that blocks.
CHILD_WAITS: tuple[tuple[str, frozenset[str]], ...] = (
    ("subprocess.py", frozenset({"wait", "_wait", "_try_wait", "communicate", "_communicate"})),
    ("multiprocessing/popen_fork.py", frozenset({"poll", "wait"})),
    ("multiprocessing/process.py", frozenset({"join"})),
    ("multiprocessing/connection.py", frozenset({"recv", "recv_bytes", "_recv", "poll", "wait"})),
    ("multiprocessing/pool.py", frozenset({"get", "wait", "join", "next"})),
    ("torch/multiprocessing/spawn.py", frozenset({"join"})),
)
# A thread in here stands for the child processes that it hands work to.
CHILD_MANAGERS = ("concurrent/futures/process.py", "multiprocessing/pool.py")
# Waits on another thread or process, told by the Python code that blocks. A bare `with lock:`
# leaves
# no frame of its own: see activity._user_code.
LOCK_FUNCTIONS: tuple[tuple[str, frozenset[str]], ...] = (
    (
        "threading.py",
        frozenset({"wait", "wait_for", "acquire", "__enter__", "join", "_wait_for_tstate_lock"}),
    ),
    ("queue.py", frozenset({"get", "put", "join"})),
    ("multiprocessing/queues.py", frozenset({"get", "put"})),
    ("multiprocessing/synchronize.py", frozenset({"acquire", "__enter__", "wait"})),
    ("concurrent/futures/_base.py", frozenset({"result", "wait", "exception"})),
)  # fmt: skip
_NATIVE_LOCK = re.compile(
    r"PyThread_acquire_lock|lock_PyThread|rlock_acquire|semlock|sem_(timed|clock)?wait"
)
_NATIVE_COLLECTIVE = re.compile(r"c10d::(Work|ProcessGroup|Backend)|^nccl|ncclGroup|gloo::")

_NATIVE_GPU = re.compile(
    r"(cuda|cu|hip)(Stream|Event|Device|Ctx)Synchronize|local_scalar_dense_(cuda|hip)"
)


def of_user_function(name: str) -> Activity | None:
    """The phase that a user's own function name shows, as in `save_checkpoint` or `evaluate`."""
    if _LOAD_NAME.search(name):
        return Activity.MODEL_LOADING
    if _SAVE_NAME.search(name) and not _NOT_SAVE_NAME.search(name):
        return Activity.CHECKPOINT
    return Activity.EVALUATION if _EVAL_NAME.search(name) else None


def of_trainer(file: str, name: str) -> Activity | None:
    """The phase that a function of a training framework shows, as in transformers' Trainer."""
    if not _TRAINERS.search(file):
        return None
    return Activity.CHECKPOINT if _TRAINER_SAVES.search(name) else of_user_function(name)


def is_lock_function(file: str, name: str) -> bool:
    return any(
        (file == path or file.endswith(f"/{path}")) and name in names
        for path, names in LOCK_FUNCTIONS
    )


def waits_for_child(file: str, name: str) -> bool:
    return any(
        (file == path or file.endswith(f"/{path}")) and name in names for path, names in CHILD_WAITS
    )


def of_native(name: str) -> Activity | None:
    """What a C or C++ function name shows; None for most."""
    if _NATIVE_COLLECTIVE.search(name):
        return Activity.COLLECTIVE
    if _NATIVE_GPU.search(name):
        return Activity.GPU
    return Activity.LOCK if _NATIVE_LOCK.search(name) else None
