#!/bin/sh
# Makes the secrets that docker-compose.yml mounts: in ./secrets beside it, or in the folder that is
# given and that HANGWATCH_SECRETS names. What is there already stays as it is.
# The folder is closed to others; the files are readable, since no container runs as their owner.
set -eu
folder=${1:-$(dirname "$0")/../../secrets}
(umask 077 && mkdir -p "$folder")
umask 022
cd "$folder"

random() {
    od -An -N32 -tx1 /dev/urandom | tr -d ' \n'
}

keep() { # name, text
    [ -s "$1" ] || printf '%s\n' "$2" >"$1"
}

keep database_password "$(random)"
keep database_url "postgresql://hangwatch:$(cat database_password)@postgres/hangwatch"
keep redis_password "$(random)"
keep redis_config "user default on >$(cat redis_password) allchannels -@all +@connection +@pubsub -@dangerous"
keep redis_url "redis://:$(cat redis_password)@redis:6379"
keep bootstrap_token "$(random)"
