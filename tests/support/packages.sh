#!/bin/sh
# Installs what pip cannot: a browser for the page tests and a stock Postgres for one database test.
# Debian as root: its packages. Elsewhere: the browser that Playwright brings; Postgres is the user's.
set -eu
bin=$1

apt_install() {
    apt-get install --yes --quiet --no-install-recommends "$@" >/dev/null
}

has_apt() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

if ! command -v chromium >/dev/null && ! ls "$HOME"/.cache/ms-playwright/chromium-* >/dev/null 2>&1; then
    if has_apt; then
        apt-get update --quiet >/dev/null
        apt_install chromium fonts-dejavu-core
    else
        "$bin/playwright" install chromium
    fi
fi

if ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && has_apt; then
    apt-get update --quiet >/dev/null
    # A cluster started by the package would take a port nobody asked for.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    apt_install postgresql
fi
