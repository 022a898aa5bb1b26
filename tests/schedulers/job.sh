#!/bin/bash
# The job script of the test: deploy/slurm/train.sbatch with a training that this machine can bear.
echo "begins restart=${SLURM_RESTART_COUNT:-0} nodes=$SLURM_JOB_NODELIST"
"$PYTHON" "$DEPLOY/hangwatch_watch.py" --requeue --max-requeues 1 --after 2 --every 1 &
srun --nodes="$SLURM_NNODES" --ntasks-per-node=1 --kill-on-bad-exit=1 bash -c 'exec hangwatch run -- \
    "$PYTHON" -m torch.distributed.run --nnodes "$SLURM_NNODES" --nproc-per-node 1 \
    --node-rank "$SLURM_NODEID" --master-addr 127.0.0.1 --master-port "$MASTER" "$PROGRAM"'
status=$?
echo "ends restart=${SLURM_RESTART_COUNT:-0} status=$status"
exit $status
