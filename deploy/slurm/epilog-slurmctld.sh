#!/bin/sh
# EpilogSlurmctld= of slurm.conf: once per job, as SlurmUser, where slurmctld runs. Waits, bounded,
# until the evidence of a hang is stored, and writes what is believed of the job into its
# AdminComment, where `scontrol show job` and sacct show it. Never fails.
#
# Once per job and not on each node (Epilog=): hundreds of nodes would ask the same at once, and only
# here Slurm says the job's name.
[ -r /etc/hangwatch/scheduler.env ] && . /etc/hangwatch/scheduler.env
export HANGWATCH_SERVER HANGWATCH_TOKEN_FILE
job="$SLURM_JOB_NAME-$SLURM_JOB_ID"

said=$(timeout 20 hangwatch check -- "$job" 2>/dev/null)
[ $? -eq 1 ] || exit 0
timeout 60 hangwatch hold --timeout 30s -- "$job" >/dev/null 2>&1
timeout 20 scontrol update "JobId=$SLURM_JOB_ID" "AdminComment=hangwatch: $said" >/dev/null 2>&1
exit 0
