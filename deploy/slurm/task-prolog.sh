#!/bin/sh
# TaskProlog= of slurm.conf: as the user, before each task. Slurm puts what is printed as
# "export NAME=value" into the task's environment: the run dir that this node's agent reads, and a
# name that tells two jobs called "train" apart. What the user has set stays.
run_dir=/run/hangwatch
[ -r /etc/hangwatch/task.env ] && . /etc/hangwatch/task.env
# Not echo, which reads backslashes in a name as it likes.
printf 'export HANGWATCH_RUN_DIR=%s\n' "${HANGWATCH_RUN_DIR:-$run_dir}"
printf 'export HANGWATCH_JOB=%s\n' "${HANGWATCH_JOB:-$SLURM_JOB_NAME-$SLURM_JOB_ID}"
