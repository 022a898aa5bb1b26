"""`hangwatch run`: prepares a job's environment so that the probe loads itself, becomes the job.

It does not watch anything and is gone when the job's command runs: exit codes and signals are the
job's own.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from hangwatch_agent.probe import folder, sites

INJECT = Path(__file__).resolve().parent / "probe" / "inject"
NOT_FOUND = 127  # what a shell returns for a command that does not exist
NOT_EXECUTABLE = 126
TORCHRUN_MODULES = ("torch.distributed.run", "torch.distributed.launch")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1", "")
FLAGS = ("standalone", "no-python", "module", "run-path")  # torchrun options without a value
MPI_JOBS = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")  # the same for all ranks of one mpirun
DEFAULT_PORT = "29500"  # torchrun's own, for an endpoint without port


def main(
    job: str | None, run_dir: Path, command: list[str], *, has_call_sites: bool = False
) -> NoReturn:
    """Replace this process by `command` with the probe prepared; exits 126 or 127 if it cannot."""
    if not command:
        _refuse(2, "no command given", "hangwatch run -- torchrun train.py")
    prepared = environment(job, run_dir, command, os.environ, has_call_sites=has_call_sites)
    program = shutil.which(command[0], path=prepared.get("PATH"))
    if program is None:
        hint = f"check the name, or give the full path: hangwatch run -- /path/to/{command[0]}"
        _refuse(NOT_FOUND, f"command not found: {command[0]}", hint)
    _prepare(run_dir)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(program, command, prepared)
    except OSError as error:
        why = f"{command[0]} cannot be run: {error.strerror}"
        _refuse(NOT_EXECUTABLE, why, f"run it alone first: {shlex.join(command)}")


def _prepare(run_dir: Path) -> None:
    """Make the run dir, or say now what every rank's probe would find out on its own."""
    remedy = "choose another: hangwatch run --run-dir DIR -- ..."
    try:
        run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        problem = folder.problem(str(run_dir))
    except OSError as error:
        _refuse(NOT_EXECUTABLE, f"run dir {run_dir} cannot be made: {error.strerror}", remedy)
    if problem:
        _refuse(NOT_EXECUTABLE, f"run dir {run_dir} {problem}", remedy)
    if not os.access(run_dir, os.W_OK | os.X_OK):
        why = f"run dir {run_dir} cannot be written to by uid {os.geteuid()}"
        remedy = f"chmod 1777 {run_dir} as its owner, or hangwatch run --run-dir DIR -- ..."
        _refuse(NOT_EXECUTABLE, why, remedy)


def environment(
    job: str | None,
    run_dir: Path,
    command: Sequence[str],
    base: Mapping[str, str],
    *,
    nonce: str | None = None,
    has_call_sites: bool = False,
) -> dict[str, str]:
    """`base` plus the probe's path, the run dir, the job's name and its launch.

    `has_call_sites` makes the probe note where each collective is called. `nonce` is the random
    part of a single-node launch, for callers that need it fixed.
    """
    name = job or base.get("HANGWATCH_JOB") or script_name(command)
    endpoint = rendezvous(command, base)
    unique = endpoint or f"nonce {nonce or secrets.token_hex(8)}"
    found = dict(base)
    found["HANGWATCH_JOB"] = name
    found["HANGWATCH_RUN_DIR"] = str(run_dir.absolute())
    found["HANGWATCH_LAUNCH_ID"] = _launch_id(name, unique)
    if has_call_sites:
        found[sites.VARIABLE] = "1"
    others = [path for path in base.get("PYTHONPATH", "").split(os.pathsep) if path]
    kept = [path for path in others if path != str(INJECT)]
    found["PYTHONPATH"] = os.pathsep.join([str(INJECT), *kept])
    return found


def script_name(command: Sequence[str]) -> str:
    """The script's name without its suffix: "train" of `torchrun --nproc-per-node 4 train.py`."""
    for word in command:
        if word.endswith(".py"):
            return Path(word).stem
    modules = [after for flag, after in itertools.pairwise(command) if flag == "-m"]
    own = [module for module in modules if module not in TORCHRUN_MODULES]
    if own:
        return own[-1].rpartition(".")[2]
    return Path(command[0]).name if command else "job"


def rendezvous(command: Sequence[str], base: Mapping[str, str]) -> str:
    """What the nodes of one launch have in common, or "" when the launch is on this node alone."""
    if is_torchrun(command):
        return _of_torchrun(command, base)
    if any(base.get(name) for name in MPI_JOBS):
        return next(base[name] for name in MPI_JOBS if base.get(name))
    master = base.get("MASTER_ADDR", "")
    is_launched = base.get("RANK", "") != "" or base.get("WORLD_SIZE", "1") not in ("", "1")
    if master and is_launched:
        return f"{_canonical(master)}:{base.get('MASTER_PORT', DEFAULT_PORT)}"
    return ""


def is_torchrun(command: Sequence[str]) -> bool:
    names = [Path(word).name for word in command[:2]]
    return "torchrun" in names or any(module in command for module in TORCHRUN_MODULES)


def _of_torchrun(command: Sequence[str], base: Mapping[str, str]) -> str:
    # torchrun takes each option from PET_<NAME> as well.
    options = {
        name[4:].lower().replace("_", "-"): value
        for name, value in base.items()
        if name.startswith("PET_")
    }
    options.update(_options(command))
    nodes = options.get("nnodes", "1").rpartition(":")[2]
    if nodes == "1" or "standalone" in options:
        return ""
    run_id = options.get("rdzv-id", "none")
    endpoint = options.get("rdzv-endpoint", "")
    if not endpoint:
        endpoint = f"{options.get('master-addr', '127.0.0.1')}:{options.get('master-port', '')}"
    host, _, port = endpoint.rpartition(":") if ":" in endpoint else (endpoint, "", "")
    return f"{run_id} {_canonical(host)}:{port or DEFAULT_PORT}"


def _options(command: Sequence[str]) -> dict[str, str]:
    """torchrun's own options, with dashes; the script's, which come after it, are left out."""
    found: dict[str, str] = {}
    words = iter(command)
    for word in words:
        if word.endswith(".py"):
            break
        if not word.startswith("--"):
            continue
        name, has_value, value = word[2:].partition("=")
        name = name.replace("_", "-")
        if has_value:
            found[name] = value
        elif name in FLAGS:
            found[name] = ""
        else:
            found[name] = next(words, "")
    return found


def _canonical(host: str) -> str:
    """The host as all nodes spell it.

    Not resolved: many systems resolve their own name to 127.0.1.1, so that the node which runs the
    rendezvous would get another address than the nodes which join it.
    """
    text = host.strip("[]").lower().rstrip(".")
    return "localhost" if text in LOCAL_HOSTS else text


def _launch_id(name: str, unique: str) -> str:
    return hashlib.sha256(f"{name}\0{unique}".encode()).hexdigest()[:16]


def _refuse(code: int, what: str, remedy: str) -> NoReturn:
    sys.stderr.write(f"hangwatch run: {what}\n  try: {remedy}\n")
    raise SystemExit(code)
