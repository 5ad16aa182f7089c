# What the checks share. Sourced, not run.
# shellcheck shell=bash

# Goes on if the command succeeds. Otherwise the package is missing: with CHECK_STRICT=1 it is installed, without it the
# check ends. The command may be left out where the package is named like its program.
need() { # PACKAGE [COMMAND…]
    local package=$1
    shift
    [ $# -gt 0 ] || set -- command -v "$package"
    PATH=$PATH:/usr/sbin "$@" >/dev/null 2>&1 && return
    if [ "${CHECK_STRICT:-0}" != 1 ]; then
        echo "$package is missing: apt-get install $package" >&2
        exit 1
    fi
    printf '\n== install %s\n' "$package"
    apt_install "$package" || {
        echo "Without $package, strict mode cannot pass." >&2
        exit 1
    }
}

# RUNLEVEL=1: where there is no systemd, a server that is installed is not started by that.
apt_install() { # PACKAGE
    local install=(env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$1")
    "${install[@]}" || { apt-get update -qq && "${install[@]}"; }
}

# The service is configured by the checks alone.
unset "${!ANIMAL_STORE_@}"

# Builds the service.
build_service() {
    cargo build --quiet --locked --package animal-store-server
    program=$(realpath "${CARGO_TARGET_DIR:-target}/debug/animal-store")
}

# Starts it in a folder, with its log there, on a free port, with one API key and what the environment sets. Its process is
# $service then, its address $url.
start_service() { # FOLDER TOKEN
    local log=$1/service.log
    : >"$log"
    (
        cd "$1" || exit
        export ANIMAL_STORE_KEYS__MEMORY__TOKENS=$2
        exec "$program" --listen 127.0.0.1:0 --set management.listen= --set log.format=json >>"$log" 2>&1
    ) &
    service=$!
    for _ in $(seq 200); do
        url=http://$(sed -n 's/.*"message":"listening","address":"\([0-9.:]*\)".*/\1/p' "$log")
        [ "$url" = http:// ] || return 0
        kill -0 "$service" 2>/dev/null || break
        sleep 0.05
    done
    cat "$log" >&2
    return 1
}

# Ends it in order, which it says by its exit code.
stop_service() {
    local process=${service:-}
    service=
    [ -z "$process" ] || { kill "$process" && wait "$process"; }
}
