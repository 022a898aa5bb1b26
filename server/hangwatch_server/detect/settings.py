"""Every limit of detection with its default. Reasons stand beside the numbers; no behaviour."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectSettings:
    """Limits in seconds unless the name says otherwise."""

    suspect_after_s: float = (
        10.0  # floor: shorter pauses are everyday (garbage collection, logging)
    )
    suspect_p99: float = 3.0  # times the 99th percentile of this job's own gaps
    suspect_most_s: float = 300.0
    confirm_after_s: float = 15.0
    confirm_p99: float = 5.0
    # All members entered and none leaves: a slow network looks the same for a while.
    stalled_collective_s: float = 60.0
    hang_after_s: float = 300.0  # a culprit that works outside any phase is a straggler until then
    learn_samples: int = 50  # fewer gaps than this say nothing of the 99th percentile
    learn_early: int = 12  # until then the newest few are looked at: a slow start is forgotten
    learn_window: int = 2000
    # A job that ran before it was watched has a pace that nobody knows yet.
    unseen_confirm_s: float = 60.0
    put_off_most_s: float = 300.0  # however long its frozen pauses are that end by themselves

    hard_apart_s: float = 2.0  # hard evidence must be true in two snapshots this far apart
    frozen_captures: int = 3
    frozen_window_s: float = 10.0
    # Captures are taken on ticks of a second or so: three of them span the window less this much.
    frozen_slack_s: float = 0.6
    # Without any stack, "frozen" rests on CPU, I/O and children alone, so it must last longer.
    blind_frozen_s: float = 30.0
    working_cpu_share: float = 0.05
    # Used or waited for, ready to run: a thread that polls is ready for moments only.
    wanted_cpu_share: float = 0.5
    # The probe's own record dirties up to 64 KiB a second, which the kernel counts as writing.
    moving_io_bytes_per_s: float = 128 * 1024
    # A download may be slow; the queues and logs of children that only wait for work say less.
    moving_child_io_bytes_per_s: float = 16 * 1024
    working_gpu_percent: float = 5.0
    # The probe's thread and a watchdog's take less; a thread that the main thread waits for, more.
    working_threads_share: float = 0.25
    moving_counter_s: float = 5.0  # calls on another group this recent: the rank goes on there

    phase_frozen_s: float = 120.0  # an fsync to slow storage looks frozen
    storage_frozen_s: float = 120.0  # in D state on storage, in a phase or not
    compile_limit_s: float = 1800.0
    checkpoint_limit_s: float = 900.0
    evaluation_limit_s: float = 1800.0
    loading_limit_s: float = 600.0

    rendezvous_frozen_s: float = 15.0  # the absent rank's process exists and is frozen elsewhere
    rendezvous_absent_s: float = 60.0  # no process of that rank at all
    rendezvous_per_rank_s: float = 0.003
    rendezvous_working_s: float = 600.0  # loading before init is slow on a cold file system
    starting_s: float = 120.0  # ranks may take this long to report, or to show counters

    no_progress_after_s: float = 30.0
    no_progress_hung_s: float = 600.0
    # From the end of the last rank to the first sign of the next attempt: torchrun waits half a
    # minute for more nodes, and then starts the processes.
    restart_within_s: float = 40.0
    node_lost_s: float = 60.0  # a silent node counts as lost for good (NCCL RAS' own limit)
    before_timeout_s: float = 60.0  # evidence is stored this long before the group's own timeout

    first_capture_at: float = 0.8  # of the suspect limit
    capture_again_most_s: float = 30.0
    wish_ranks: int = 10
    needs_diagnosis_s: float = 1.0

    straggler_waits: int = 20  # fewer waits name no straggler
    straggler_share: float = 0.5  # of the waits, in which the same rank came last

    false_alarm_rate: float = 1e-6  # of a hang that rests on samples of stacks alone
    sample_apart_s: float = 2.0
    sample_least: int = 20  # of a job at work, before its own chance counts instead of:
    sample_assumed: float = 0.5  # the chance that a sample of a job at work looks stuck


DEFAULT = DetectSettings()
