#!/bin/sh
# Prolog= of slurm.conf: on each node, as root, before a job. Looks whether the agent runs, and asks
# systemd to start it where it does not. It never fails: a Prolog that does drains the node and puts
# the job back, and training without a watch is better than no training.
run_dir=/run/hangwatch
[ -r /etc/hangwatch/agent.env ] && . /etc/hangwatch/agent.env
lock=${HANGWATCH_RUN_DIR:-$run_dir}/agent.lock

# The agent holds this lock for as long as it lives.
is_watched() {
    [ -e "$lock" ] && ! flock --nonblock "$lock" true
}

if ! is_watched; then
    logger --tag hangwatch "job $SLURM_JOB_ID begins on $SLURMD_NODENAME without an agent"
    systemctl start --no-block hangwatch-agent.service
fi >/dev/null 2>&1
exit 0
