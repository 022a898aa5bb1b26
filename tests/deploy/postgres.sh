#!/bin/sh
# What the entry point of the image `postgres` does with these variables: the database is made at the
# first start, by a server that only its own socket reaches, and then the server takes this process.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --pgdata="$PGDATA" --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" \
        --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
    pg_ctl --pgdata="$PGDATA" --wait --options="-c listen_addresses=''" start
    createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl --pgdata="$PGDATA" --wait --mode=fast stop
fi
exec "$@"
