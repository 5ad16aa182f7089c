# What the checks share. Sourced, not run.

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

# Starts the service of the debug build on a free port, with what the environment configures and one API key besides.
# Its process is $service then, its address $url, its log in the file.
start_service() { # TOKEN LOG
    ANIMAL_STORE_KEYS__MEMORY__TOKENS=$1 target/debug/animal-store --listen 127.0.0.1:0 --set management.listen= \
        --set log.format=json >"$2" 2>&1 &
    service=$!
    for _ in $(seq 200); do
        url=http://$(sed -n 's/.*"message":"listening","address":"\([0-9.:]*\)".*/\1/p' "$2")
        [ "$url" = http:// ] || return 0
        kill -0 $service 2>/dev/null || break
        sleep 0.05
    done
    cat "$2" >&2
    return 1
}

stop_service() {
    [ -z "${service:-}" ] || { kill "$service" && wait "$service"; } || true
    service=
}
