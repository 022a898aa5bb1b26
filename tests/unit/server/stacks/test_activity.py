"""What recorded and composed stacks show; whether a stack moves is tested with the facts."""

from __future__ import annotations

import pytest
from tests.unit.server.stacks import recorded

from hangwatch_agent import wire
from hangwatch_server import stacks
from hangwatch_server.model import Activity, StackFacts

TORCH = "/opt/venv/lib/python3.11/site-packages/torch"


def facts_of(process: wire.ProcessStacks, wchan: str = "") -> StackFacts:
    facts = wire.ProcessFacts(state="S", wchan=wchan)
    sample = stacks.Sample(recorded.part(process, facts=facts), taken_s=10.0, capture="c1")
    made = stacks.facts([sample], now_s=11.0)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("name", "activity", "op"),
    [
        ("allreduce", Activity.COLLECTIVE, "all_reduce"),
        ("allreduce_native", Activity.COLLECTIVE, "all_reduce"),
        ("agobj", Activity.COLLECTIVE, "all_gather"),
        ("recv", Activity.COLLECTIVE, "recv"),
        ("barrier", Activity.COLLECTIVE, "barrier"),
        ("mbarrier", Activity.COLLECTIVE, "monitored_barrier"),
        ("ddp", Activity.COLLECTIVE, "all_reduce"),
        ("init", Activity.RENDEZVOUS, "init_process_group"),
        ("newgroup", Activity.RENDEZVOUS, "new_group"),
        ("save", Activity.CHECKPOINT, ""),
        ("loader_inline", Activity.DATALOADER, ""),
        ("loader_workers", Activity.DATALOADER, ""),
        ("lock", Activity.LOCK, ""),
        ("lock_native", Activity.LOCK, ""),
        ("condition", Activity.LOCK, ""),
        ("queue", Activity.LOCK, ""),
        ("atexit", Activity.SHUTDOWN, ""),
        ("mplock", Activity.USER_CODE, ""),
        ("async", Activity.USER_CODE, ""),
        ("subprocess_run", Activity.USER_CODE, ""),
        ("join_spawn", Activity.USER_CODE, ""),
        ("mpqueue", Activity.LOCK, ""),
        ("process_pool", Activity.LOCK, ""),
        ("class_lock", Activity.LOCK, ""),
        ("socket_read", Activity.USER_CODE, ""),
        ("file_lock", Activity.USER_CODE, ""),
        ("dcp_save", Activity.CHECKPOINT, ""),
        ("dcp_async_save", Activity.CHECKPOINT, ""),
        ("torch_load", Activity.MODEL_LOADING, ""),
        ("torch_compile", Activity.COMPILE, ""),
        ("loader_spawn", Activity.DATALOADER, ""),
    ],
)
def test_recorded_stack_is_recognised(name: str, activity: Activity, op: str) -> None:
    facts = facts_of(recorded.process(name))

    assert (facts.activity, facts.op) == (activity, op)


def test_where_is_the_users_own_innermost_frame() -> None:
    facts = facts_of(recorded.process("loader_inline"))

    assert facts.where == "prog.py:42 in __getitem__"


def test_leaf_is_the_innermost_python_frame_of_all() -> None:
    assert facts_of(recorded.process("loader_workers")).leaf == "selectors.py:415 in select"


def test_object_collective_names_the_call_that_the_user_wrote() -> None:
    assert facts_of(recorded.process("agobj")).detail == "inside all_gather_object"


def test_wait_in_backward_is_told_apart_from_other_waits() -> None:
    assert facts_of(recorded.process("ddp")).is_in_backward
    assert not facts_of(recorded.process("allreduce")).is_in_backward


def test_lock_names_the_frame_that_seems_to_hold_it() -> None:
    holder = facts_of(recorded.process("lock")).lock_holder

    assert holder == "thread 'refresher' at prog.py:10 in refresh"


def test_lock_of_a_class_is_held_where_that_class_took_it() -> None:
    facts = facts_of(recorded.process("class_lock"))

    assert facts.detail == "thread 'writer' seems to hold it at prog.py:17 in flush"
    assert facts.waits_on == "thread"


def test_wait_for_an_asynchronous_save_names_the_thread_that_writes() -> None:
    facts = facts_of(recorded.process("dcp_async_save"))

    assert facts.detail.startswith(
        "seems to wait for thread 'AsyncCheckpointExecutor_0' at pathlib.py:"
    )


@pytest.mark.parametrize(
    ("name", "wchan", "detail"),
    [
        ("socket_read", "wait_woken", "waits for the network"),
        ("http_read", "wait_woken", "waits for the network"),
        ("file_lock", "locks_lock_inode_wait", "waits for a file lock"),
    ],
)
def test_kernel_tells_what_user_code_waits_for(name: str, wchan: str, detail: str) -> None:
    facts = facts_of(recorded.process(name), wchan)

    assert facts.detail == detail
    assert facts.activity is (Activity.LOCK if name == "file_lock" else Activity.USER_CODE)


def test_wait_for_a_file_lock_is_a_lock() -> None:
    facts = facts_of(recorded.process("file_lock"), "locks_lock_inode_wait")

    assert facts.activity is Activity.LOCK


def test_wait_for_the_gpu_is_told_by_python_and_by_native_frames() -> None:
    python = recorded.stack(
        ("synchronize", f"{TORCH}/cuda/__init__.py", 1080), ("step", "/home/u/train.py", 5)
    )
    frames = (
        wire.Frame(name="cudaStreamSynchronize", file="libcudart.so.12", line=0, is_native=True),
        wire.Frame(name="step", file="/home/u/train.py", line=5),
    )
    thread = wire.Thread(pid=1, thread_id=1, name="MainThread", frames=frames, is_active=True)
    item = wire.ProcessStacks(pid=1, role="main", threads=(thread,))

    assert [facts_of(found).activity for found in (python, item)] == [Activity.GPU] * 2


def test_wait_that_may_be_a_lock_or_a_work_is_marked() -> None:
    assert facts_of(recorded.process("async"), wchan="futex_wait_queue").is_opaque
    assert not facts_of(recorded.process("class_lock"), wchan="futex_wait_queue").is_opaque


def test_thread_that_sleeps_is_in_no_lock_when_the_kernel_says_so() -> None:
    facts = facts_of(recorded.process("lock"), wchan="hrtimer_nanosleep")

    assert facts.activity is Activity.USER_CODE


def test_asynchronous_wait_says_that_it_cannot_be_told_from_a_lock() -> None:
    facts = facts_of(recorded.process("async"), wchan="futex_wait_queue")

    assert facts.detail == "waits for a lock or an asynchronous call"


def test_loader_wait_tells_what_its_stuck_worker_does() -> None:
    parent = recorded.process("loader_workers")
    worker = recorded.process("loader_worker", role="loader")
    sample = stacks.Sample(recorded.part(parent, worker), taken_s=10.0, capture="c1")

    facts = stacks.facts([sample], now_s=10.0)

    assert facts is not None
    assert facts.detail == f"its loader worker {worker.pid} is at prog.py:42 in __getitem__"


@pytest.mark.parametrize(
    ("name", "activity"),
    [
        ("save_checkpoint", Activity.CHECKPOINT),
        ("Trainer._write_ckpt", Activity.CHECKPOINT),
        ("load_checkpoint", Activity.MODEL_LOADING),
        ("evaluate", Activity.EVALUATION),
        ("_checkpointed_forward", Activity.USER_CODE),
        ("train_and_evaluate", Activity.USER_CODE),
        ("train_step", Activity.USER_CODE),
    ],
)
def test_users_function_name_announces_a_phase(name: str, activity: Activity) -> None:
    process = recorded.stack(("sleep", "/home/u/train.py", 9), (name, "/home/u/train.py", 5))

    assert facts_of(process).activity is activity


@pytest.mark.parametrize(
    ("file", "name", "activity"),
    [
        ("transformers/trainer.py", "Trainer._save_checkpoint", Activity.CHECKPOINT),
        ("transformers/modeling_utils.py", "PreTrainedModel.save_pretrained", Activity.CHECKPOINT),
        ("accelerate/accelerator.py", "Accelerator.save_state", Activity.CHECKPOINT),
        ("transformers/trainer.py", "Trainer.evaluation_loop", Activity.EVALUATION),
        ("deepspeed/runtime/engine.py", "DeepSpeedEngine.load_checkpoint", Activity.MODEL_LOADING),
        ("deepspeed/runtime/engine.py", "DeepSpeedEngine.step", Activity.USER_CODE),
        ("webdataset/tariterators.py", "url_opener", Activity.DATALOADER),
        ("pandas/io/parsers.py", "load_checkpoint", Activity.USER_CODE),
    ],
)
def test_function_of_a_training_package_shows_a_phase(
    file: str, name: str, activity: Activity
) -> None:
    process = recorded.stack(
        ("read", "/usr/lib/python3.11/socket.py", 700),
        (name, f"/opt/venv/lib/python3.11/site-packages/{file}", 9),
        ("main", "/home/u/train.py", 5),
    )

    assert facts_of(process).activity is activity


def test_barrier_inside_a_checkpoint_function_is_a_collective() -> None:
    process = recorded.stack(
        ("barrier", f"{TORCH}/distributed/distributed_c10d.py", 5356),
        ("save_checkpoint", "/home/u/train.py", 5),
    )

    assert facts_of(process).activity is Activity.COLLECTIVE


def test_compiling_is_told_from_running_compiled_code() -> None:
    compiling = recorded.stack(
        ("compile_file", f"{TORCH}/_inductor/codecache.py", 1),
        ("_compile", f"{TORCH}/_dynamo/convert_frame.py", 1),
        ("step", "/home/u/train.py", 5),
    )
    running = recorded.stack(
        ("tokenize", "/home/u/train.py", 9),
        ("compile_wrapper", f"{TORCH}/_dynamo/eval_frame.py", 1),
        ("step", "/home/u/train.py", 5),
    )

    assert facts_of(compiling).activity is Activity.COMPILE
    assert facts_of(running).activity is Activity.USER_CODE


def test_join_is_seen() -> None:
    process = recorded.stack(
        ("all_reduce", f"{TORCH}/distributed/distributed_c10d.py", 3252),
        ("_notify_procs_to_terminate", f"{TORCH}/distributed/algorithms/join.py", 30),
        ("train", "/home/u/train.py", 5),
    )

    assert facts_of(process).is_in_join


def test_fsync_inside_torch_save_is_a_checkpoint() -> None:
    process = recorded.stack(
        ("write_file", "/home/u/storage.py", 9),
        ("save", f"{TORCH}/serialization.py", 1003),
        ("main", "/home/u/train.py", 5),
    )

    assert facts_of(process).activity is Activity.CHECKPOINT
