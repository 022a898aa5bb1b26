"""The environment variables that a record may carry; no other name ever leaves the process."""

from __future__ import annotations

NAMES = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_ERROR_FILE",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_JOB_NAME",
    "SLURM_RESTART_COUNT",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "HANGWATCH_JOB",
    "HANGWATCH_LAUNCH_ID",
    "NCCL_RAS_ADDR",
    "NCCL_RAS_ENABLE",
    "TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
    "TORCH_FR_DUMP_TEMP_FILE",
)
MAX_VALUE = 512  # characters of one value
