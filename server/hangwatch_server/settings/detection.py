"""The limits of detection as settings: names and defaults of `detect.DetectSettings`, and why.

Apart from the other settings because they are many and belong to one room. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass, field


def setting(help: str, why: str, *, secret: bool = False) -> dict[str, object]:
    """The metadata that every setting carries: what it does, and why it has its default."""
    return {"help": help, "why": why, "secret": secret}


@dataclass(frozen=True, kw_only=True)
class DetectionLimits:
    """When a stall is suspected, and when it is a hang."""

    suspect_after_s: float = field(
        default=10.0,
        metadata=setting(
            "least stall in seconds before a job is suspected",
            "shorter pauses are everyday: garbage collection, logging",
        ),
    )
    suspect_p99: float = field(
        default=3.0,
        metadata=setting(
            "suspect after this many times the 99th percentile of the job's own gaps",
            "a slow but steady job sets its own pace",
        ),
    )
    suspect_most_s: float = field(
        default=300.0,
        metadata=setting(
            "most seconds that learned gaps can put off a suspicion",
            "a job with rare long gaps is still looked at within five minutes",
        ),
    )
    confirm_after_s: float = field(
        default=15.0,
        metadata=setting(
            "least stall in seconds before a frozen culprit is a hang",
            "three captures over ten seconds are needed to call it frozen",
        ),
    )
    confirm_p99: float = field(
        default=5.0,
        metadata=setting(
            "confirm after this many times the 99th percentile of the job's own gaps",
            "the step from suspicion to alarm keeps its distance for slow jobs",
        ),
    )
    stalled_collective_s: float = field(
        default=60.0,
        metadata=setting(
            "seconds until a collective that all entered and none leaves is a hang",
            "a slow network looks the same for a while",
        ),
    )
    hang_after_s: float = field(
        default=300.0,
        metadata=setting(
            "seconds until a culprit that works outside any phase is a hang",
            "until then it is a straggler",
        ),
    )
    learn_samples: int = field(
        default=50,
        metadata=setting(
            "gaps needed before a limit is learned",
            "fewer say nothing of the 99th percentile",
        ),
    )
    learn_early: int = field(
        default=12,
        metadata=setting(
            "newest gaps that count before that",
            "a slow start is forgotten, long steps are not",
        ),
    )
    learn_window: int = field(
        default=2000,
        metadata=setting(
            "gaps that are remembered",
            "about half an hour of a usual job",
        ),
    )
    unseen_confirm_s: float = field(
        default=60.0,
        metadata=setting(
            "least stall in seconds before a hang in a job whose pace was not seen yet",
            "it ran before it was watched, perhaps with long steps",
        ),
    )
    put_off_most_s: float = field(
        default=300.0,
        metadata=setting(
            "most seconds to which frozen pauses that end by themselves put off an alarm",
            "by then somebody should look",
        ),
    )
    hard_apart_s: float = field(
        default=2.0,
        metadata=setting(
            "seconds between the two looks that hard evidence must hold in",
            "heartbeats of different nodes are up to one second apart",
        ),
    )
    frozen_captures: int = field(
        default=3,
        metadata=setting(
            "equal captures in a row that call a rank frozen",
            "two can be equal by chance",
        ),
    )
    frozen_window_s: float = field(
        default=10.0,
        metadata=setting(
            "seconds that these captures must span",
            "slow loops come back to the same line sooner",
        ),
    )
    frozen_slack_s: float = field(
        default=0.6,
        metadata=setting(
            "seconds by which that span may fall short",
            "captures are taken on ticks, not at exact times",
        ),
    )
    blind_frozen_s: float = field(
        default=30.0,
        metadata=setting(
            "seconds until a rank without stacks counts as frozen",
            "CPU, I/O and children alone are weaker evidence",
        ),
    )
    working_cpu_share: float = field(
        default=0.05,
        metadata=setting(
            "share of one core from which a main thread counts as working",
            "a polling wait uses less",
        ),
    )
    wanted_cpu_share: float = field(
        default=0.5,
        metadata=setting(
            "share of one core, used or waited for, from which a main thread counts as working",
            "a crowded machine lets it wait; a thread that polls is ready for moments only",
        ),
    )
    moving_io_bytes_per_s: float = field(
        default=131072.0,
        metadata=setting(
            "bytes per second from which a rank counts as reading or writing",
            "the probe's own record can make up to half of that",
        ),
    )
    moving_child_io_bytes_per_s: float = field(
        default=16384.0,
        metadata=setting(
            "bytes per second from which a child counts as reading or writing",
            "a download may be slow; queues and logs of idle children make less",
        ),
    )
    working_gpu_percent: float = field(
        default=5.0,
        metadata=setting(
            "GPU utilisation from which a rank counts as working",
            "idle GPUs report a few percent at times",
        ),
    )
    working_threads_share: float = field(
        default=0.25,
        metadata=setting(
            "share of one core from which a rank's other threads count as working for it",
            "a watchdog or the probe uses less",
        ),
    )
    moving_counter_s: float = field(
        default=5.0,
        metadata=setting(
            "seconds since its last call on another group within which a rank goes on there",
            "some ranks evaluate while all others wait",
        ),
    )
    phase_frozen_s: float = field(
        default=120.0,
        metadata=setting(
            "seconds until a frozen rank in a recognised phase is a hang",
            "an fsync to slow storage looks frozen",
        ),
    )
    storage_frozen_s: float = field(
        default=120.0,
        metadata=setting(
            "seconds until a rank in D state on storage is a hang",
            "slow storage ends most such waits by itself",
        ),
    )
    compile_limit_s: float = field(
        default=1800.0,
        metadata=setting(
            "seconds that compiling may take",
            "large graphs with autotuning take over twenty minutes",
        ),
    )
    checkpoint_limit_s: float = field(
        default=900.0,
        metadata=setting(
            "seconds that a checkpoint may take",
            "large shards on busy storage take ten minutes",
        ),
    )
    evaluation_limit_s: float = field(
        default=1800.0,
        metadata=setting(
            "seconds that an evaluation on some ranks may take",
            "generation on a validation set is slow",
        ),
    )
    loading_limit_s: float = field(
        default=600.0,
        metadata=setting(
            "seconds that loading a model may take",
            "cold shared storage",
        ),
    )
    rendezvous_frozen_s: float = field(
        default=15.0,
        metadata=setting(
            "seconds until a rendezvous hangs on a process that is frozen elsewhere",
            "as for any frozen culprit",
        ),
    )
    rendezvous_absent_s: float = field(
        default=60.0,
        metadata=setting(
            "seconds until a rendezvous hangs on a rank without a process",
            "schedulers start tasks of one job apart",
        ),
    )
    rendezvous_per_rank_s: float = field(
        default=0.003,
        metadata=setting(
            "seconds more for each rank of the world",
            "large jobs start slower",
        ),
    )
    rendezvous_working_s: float = field(
        default=600.0,
        metadata=setting(
            "seconds that a rank may work before it joins the rendezvous",
            "imports and loading on a cold file system",
        ),
    )
    starting_s: float = field(
        default=120.0,
        metadata=setting(
            "seconds that ranks may take to report or to show counters",
            "imports on shared storage",
        ),
    )
    no_progress_after_s: float = field(
        default=30.0,
        metadata=setting(
            "seconds without any collective until a job's progress is unknown",
            "many steps have no collective for some seconds",
        ),
    )
    no_progress_hung_s: float = field(
        default=600.0,
        metadata=setting(
            "most seconds without any collective until that is a hang",
            "the usual timeout of a process group",
        ),
    )
    restart_within_s: float = field(
        default=40.0,
        metadata=setting(
            "seconds after the end of all ranks until no restart is expected any more",
            "an elastic launcher waits half a minute for more nodes; a failed attempt that is "
            "started again by then raises no alert",
        ),
    )
    node_lost_s: float = field(
        default=60.0,
        metadata=setting(
            "seconds until a silent node counts as lost for good",
            "the limit that NCCL's own RAS uses",
        ),
    )
    before_timeout_s: float = field(
        default=60.0,
        metadata=setting(
            "seconds before a group's own timeout by which evidence is stored",
            "the watchdog ends the processes then",
        ),
    )
    first_capture_at: float = field(
        default=0.8,
        metadata=setting(
            "share of the suspect limit at which the first capture is taken",
            "so that three captures are there when confirmation is due",
        ),
    )
    capture_again_most_s: float = field(
        default=30.0,
        metadata=setting(
            "most seconds between two captures of a job that stays hung",
            "the picture on the page stays fresh",
        ),
    )
    wish_ranks: int = field(
        default=10,
        metadata=setting(
            "ranks in one automatic capture",
            "the culprits and one of each class of waiting ranks",
        ),
    )
    needs_diagnosis_s: float = field(
        default=1.0,
        metadata=setting(
            "stall in seconds from which a job is diagnosed",
            "a younger one is ordinary work between two heartbeats",
        ),
    )
    straggler_waits: int = field(
        default=20,
        metadata=setting(
            "waits that must have been seen before a straggler is named",
            "fewer can fall on one rank by chance",
        ),
    )
    straggler_share: float = field(
        default=0.5,
        metadata=setting(
            "share of the waits in which a straggler came last",
            "more often than all others together",
        ),
    )
    false_alarm_rate: float = field(
        default=1e-6,
        metadata=setting(
            "chance of a false alarm that may remain where only stacks are sampled",
            "one in a million decisions",
        ),
    )
    sample_apart_s: float = field(
        default=2.0,
        metadata=setting(
            "least seconds between two samples of stacks that both count",
            "closer ones show the same moment",
        ),
    )
    sample_least: int = field(
        default=20,
        metadata=setting(
            "samples of a job at work before its own chance of a stuck look counts",
            "fewer say too little",
        ),
    )
    sample_assumed: float = field(
        default=0.5,
        metadata=setting(
            "assumed chance that a sample of a working job looks stuck, until then",
            "jobs wait in collectives for less than half of their time",
        ),
    )
