#!/bin/sh
# Installs what pip cannot: a browser for the page tests, a stock Postgres and a Redis, a Slurm for the
# scheduler tests, promtool for the rules, and proxies for the tests of what is deployed. Debian as
# root: its packages. Elsewhere: the browser that Playwright brings; the tests of what is not there
# say so and are skipped.
set -eu
bin=$1

apt_install() {
    apt-get install --yes --quiet --no-install-recommends "$@" >/dev/null
}

has_apt() {
    [ "$(id -u)" = 0 ] && has apt-get
}

has() {
    command -v "$1" >/dev/null
}

install_browser() {
    if has_apt; then
        apt-get update --quiet >/dev/null
        apt_install fonts-dejavu-core chromium-headless-shell || apt_install fonts-dejavu-core chromium
    else
        "$bin/playwright" install chromium
    fi
}

# A whole Chromium serves where the lighter shell cannot be had.
if ! has chromium-headless-shell && ! ls "$HOME"/.cache/ms-playwright/chromium-* >/dev/null 2>&1; then
    install_browser || has chromium
fi

install_postgres() {
    ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && return
    # A cluster started by the package would take a port nobody asked for.
    mkdir -p /etc/postgresql-common &&
        { [ -e /etc/postgresql-common/createcluster.conf ] ||
            echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf; } &&
        apt_install postgresql
}

install_redis() {
    has redis-server || apt_install redis-server
}

install_slurm() {
    has slurmctld || [ -x /usr/sbin/slurmctld ] || apt_install slurmctld slurmd slurm-client munge
}

# The program alone: the packages would start a Prometheus, and web servers on port 80.
program() { # package, path inside, name
    has "$3" || [ -x "$bin/$3" ] || take "$@"
}

take() {
    folder=$(mktemp -d)
    (cd "$folder" && apt-get download --quiet "$1" >/dev/null 2>&1 && dpkg-deb --extract ./*.deb .) &&
        cp "$folder/$2" "$bin/$3"
    taken=$?
    rm -r "$folder"
    return "$taken"
}

# What the tests of the compose file make their boxes of.
install_boxes() {
    { has unshare && has setpriv && has ip && has wget; } || apt_install util-linux iproute2 wget
}

# What cannot be had costs its own tests, and nothing else.
want() { # what, command
    what=$1
    shift
    "$@" || echo "packages.sh: $what cannot be installed; its tests are skipped" >&2
}

if has_apt; then
    apt-get update --quiet >/dev/null || true  # what is installed already needs no list
    want "a stock Postgres" install_postgres
    want Redis install_redis
    want Slurm install_slurm
    want promtool program prometheus usr/bin/promtool promtool
    want Caddy program caddy usr/bin/caddy caddy
    want nginx program nginx usr/sbin/nginx nginx
    want "util-linux, iproute2 and wget" install_boxes
fi
