#!/bin/sh
# Installs what pip cannot: a browser for the page tests, a stock Postgres for one database test, a
# Slurm for the scheduler tests, and promtool for the rules. Debian as root: its packages. Elsewhere:
# the browser that Playwright brings; the tests of what is not there say so and are skipped.
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

if ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && has_apt; then
    apt-get update --quiet >/dev/null
    # A cluster started by the package would take a port nobody asked for.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    apt_install postgresql
fi

if ! has redis-server && has_apt; then
    apt-get update --quiet >/dev/null
    apt_install redis-server
fi

if ! has slurmctld && ! [ -x /usr/sbin/slurmctld ] && has_apt; then
    apt-get update --quiet >/dev/null
    apt_install slurmctld slurmd slurm-client munge
fi

# The program alone: the package would start a Prometheus.
if ! has promtool && ! [ -x "$bin/promtool" ] && has_apt; then
    apt-get update --quiet >/dev/null
    folder=$(mktemp -d)
    (cd "$folder" && apt-get download --quiet prometheus >/dev/null 2>&1 && dpkg-deb --extract ./*.deb .)
    cp "$folder/usr/bin/promtool" "$bin/promtool"
    rm -r "$folder"
fi
