"""Which training run a process belongs to, from its environment. Pure; looks nothing up by itself.

Agents on different nodes, and the same agent after a restart of the job, must derive the same key.
In order of trust:

1. a Slurm job *step*: one srun, the same everywhere, and kept when the job is requeued;
2. `HANGWATCH_LAUNCH_ID` of `hangwatch run`: it holds the rendezvous endpoint, so it tells two jobs
   apart that share a copied `--rdzv-id`. Not before 1, since under srun each task runs its own
   `hangwatch run`, and not after 3, since elastic run ids are often constants such as `100`;
3. the elastic run id unless it is torchrun's default `none`;
4. a Slurm job without a step (a batch script that starts ranks itself);
5. the master's address and port, the script, and, where all ranks are on this node, the start of
   the process that launched them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath

import msgspec

from hangwatch_agent import redaction, wire

MAX_KEY = 200
MAX_NAME = 120
MAX_RESTARTS = 1_000_000  # what a server takes
_RESTART_NAMES = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")


def launch_of(
    environ: Mapping[str, str],
    argv: Sequence[str],
    start: str,
    resolve: Callable[[str], str] = str,
) -> wire.Launch:
    """The launch that a rank's environment and arguments speak of.

    `start` names the start of the rank's launcher on this node and is used for single-node bare
    jobs only; `resolve` turns a host name into the address that all nodes agree on.
    """
    return wire.Launch(
        key=redaction.text(_key(environ, argv, start, resolve))[:MAX_KEY],
        name=redaction.text(_name(environ, argv))[:MAX_NAME],
        restart=_restart(environ),
    )


def apart(launch: wire.Launch, uid: int, holders: Iterable[tuple[str, int]]) -> wire.Launch:
    """The launch under a key of its own where another user's ranks on this node hold its key.

    The key is the job's own word. One run never has two users on one node, so this is a mistake or
    a forgery, and must not take a rank's place in the other's job. Not part of every key, since
    nodes need not agree on uids (docs/decisions/0007).
    """
    if any(key == launch.key and holder != uid for key, holder in holders):
        return msgspec.structs.replace(launch, key=f"{launch.key[: MAX_KEY - 12]}@{uid}")
    return launch


def script_of(argv: Sequence[str]) -> str:
    """The script or module that a Python command line runs, without its folder; "" if none."""
    words = iter(argv[1:])
    for word in words:
        if word == "-m":
            return next(words, "")
        if word in ("-c", "-"):
            return ""
        if word in ("-W", "-X"):
            next(words, "")
        elif not word.startswith("-"):
            return PurePath(word).name
    return ""


def _key(
    environ: Mapping[str, str], argv: Sequence[str], start: str, resolve: Callable[[str], str]
) -> str:
    slurm_job = environ.get("SLURM_JOB_ID", "")
    slurm_step = environ.get("SLURM_STEP_ID") or environ.get("SLURM_STEPID", "")
    elastic = environ.get("TORCHELASTIC_RUN_ID", "")
    if slurm_job and slurm_step:
        cluster = environ.get("SLURM_CLUSTER_NAME", "")
        return f"slurm:{cluster}:{slurm_job}.{slurm_step}"
    if environ.get("HANGWATCH_LAUNCH_ID"):
        return f"run:{environ['HANGWATCH_LAUNCH_ID']}"
    if elastic not in ("", "none"):
        return f"elastic:{elastic}"
    if slurm_job:
        return f"slurm:{environ.get('SLURM_CLUSTER_NAME', '')}:{slurm_job}"
    return _bare_key(environ, argv, start, resolve)


def _bare_key(
    environ: Mapping[str, str], argv: Sequence[str], start: str, resolve: Callable[[str], str]
) -> str:
    master = resolve(environ.get("MASTER_ADDR", ""))
    world = environ.get("WORLD_SIZE", "")
    is_single_node = bool(world) and environ.get("LOCAL_WORLD_SIZE") == world
    # torchrun picks a new MASTER_PORT at each restart; on one node the launcher's start says more.
    place = start if is_single_node and start else environ.get("MASTER_PORT", "")
    return f"bare:{master}:{place}:{script_of(argv)}"


def _name(environ: Mapping[str, str], argv: Sequence[str]) -> str:
    given = environ.get("HANGWATCH_JOB") or environ.get("SLURM_JOB_NAME")
    return given or script_of(argv) or "unnamed"


def _restart(environ: Mapping[str, str]) -> int:
    """Restarts as the launchers count them; Slurm's requeues and elastic's restarts add up."""
    counts = (environ.get(name, "") for name in _RESTART_NAMES)
    told = sum(int(count) for count in counts if count.isdecimal() and len(count) < 7)
    return min(told, MAX_RESTARTS)
