# Builds, starts and stops the service for a check. Sourced, not run.
# shellcheck shell=bash

# Only the check configures the service.
unset "${!ANIMAL_STORE_@}"

build_service() {
    cargo build --quiet --locked --package animal-store-server
    program=$(realpath "${CARGO_TARGET_DIR:-target}/debug/animal-store")
}

# Starts the service in a folder, with one API key, on a free port. Its log is FOLDER/service.log. Sets $service to the
# process id and $url to the address. Further arguments are passed on; for https, the caller sets scheme=https.
start_service() { # FOLDER TOKEN [ARGUMENT…]
    local log=$1/service.log start=${scheme:-http}://
    : >"$log"
    (
        cd "$1" || exit
        export ANIMAL_STORE_KEYS__MEMORY__TOKENS=$2
        exec "$program" --listen 127.0.0.1:0 --set management.listen= --set shutdown.drain_delay=0s \
            --set log.format=json "${@:3}" >>"$log" 2>&1
    ) &
    service=$!
    for _ in $(seq 200); do
        url=$start$(sed -n 's/.*"message":"listening","address":"\([0-9.:]*\)".*/\1/p' "$log")
        [ "$url" = "$start" ] || return 0
        kill -0 "$service" 2>/dev/null || break
        sleep 0.05
    done
    cat "$log" >&2
    return 1
}

# Stops the service and returns its exit code, which is 0 after a graceful shutdown.
stop_service() {
    local process=${service:-}
    service=
    [ -z "$process" ] || { kill "$process" && wait "$process"; }
}
