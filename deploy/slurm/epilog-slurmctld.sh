#!/bin/sh
# EpilogSlurmctld= of slurm.conf: once per job, as SlurmUser, where slurmctld runs. After a job that
# hung or failed it waits, bounded, until the evidence is stored, and names the incident in the job's
# AdminComment, which Slurm takes for requeued jobs and refuses for ended ones. Never fails.
#
# Once per job and not on each node (Epilog=): hundreds of nodes would ask the same at once, and only
# here Slurm says the job's name.
[ -r /etc/hangwatch/scheduler.env ] && . /etc/hangwatch/scheduler.env
export HANGWATCH_SERVER HANGWATCH_TOKEN_FILE
job="$SLURM_JOB_NAME-$SLURM_JOB_ID"

timeout 20 hangwatch check -- "$job" >/dev/null 2>&1
[ $? -eq 1 ] || exit 0
said=$(timeout 60 hangwatch hold --timeout 30s -- "$job" 2>/dev/null)
timeout 20 scontrol update "JobId=$SLURM_JOB_ID" "AdminComment=hangwatch: $said" >/dev/null 2>&1
exit 0
