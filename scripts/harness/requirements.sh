# Installs the requirements of a check. Sourced, not run: the `need` functions record missing requirements, and
# `install_missing` installs them, all packages with one apt command.
#
# With CHECK_INSTALL=0, the commands are printed instead, and the script ends with exit code 1. The same happens if
# packages are missing and the user is neither root nor has passwordless sudo.
# shellcheck shell=bash

missing_packages=()
install_commands=() # for what is not a package

# Records a package as missing if the command fails. Without a command, the package is a program of the same name.
need() { # PACKAGE [COMMAND…]
    local package=$1
    shift
    [ $# -gt 0 ] || set -- command -v "$package"
    PATH=$PATH:/usr/sbin "$@" >/dev/null 2>&1 || missing_packages+=("$package")
}

# Rust needs a linker, and some dependencies compile C.
need_c_compiler() {
    need gcc command -v cc
    need libc6-dev includes_stdlib
}
includes_stdlib() { cc -fsyntax-only -x c - <<<'#include <stdlib.h>'; }

need_postgres() { need postgresql has_postgres; }
has_postgres() { command -v psql && { command -v postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres'; }; }

# Records a component of the Rust toolchain as missing if cargo does not have its command.
need_component() { # COMPONENT CARGO-COMMAND
    cargo "$2" --version >/dev/null 2>&1 || install_commands+=("rustup component add $1")
}

# Records a Rust toolchain as missing.
need_toolchain() { # TOOLCHAIN
    cargo "+$1" --version >/dev/null 2>&1 || install_commands+=("rustup toolchain install --profile minimal $1")
}

# Records a tool as missing if cargo does not have its command.
need_tool() { # TOOL VERSION CARGO-COMMAND
    cargo "$3" --version >/dev/null 2>&1 ||
        install_commands+=("cargo install --locked --no-default-features $1 --version $2")
}

# Prints and runs the commands that install missing requirements. Ends the script if it must not install, or if a
# command fails.
install_missing() {
    local sudo='' blocked='' commands=() command
    command -v cargo >/dev/null || {
        echo "Rust is missing: install it from https://rustup.rs" >&2
        exit 1
    }
    [ "${CHECK_INSTALL:-1}" != 0 ] || blocked=yes
    if [ ${#missing_packages[@]} -gt 0 ]; then
        if [ "$(id -u)" != 0 ]; then
            sudo='sudo '
            sudo -n true 2>/dev/null || blocked=yes
        fi
        # RUNLEVEL=1: without systemd, the installed servers do not start.
        commands+=("${sudo}apt-get update -qq; ${sudo}env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
apt-get install -y -qq --no-install-recommends ${missing_packages[*]}")
    fi
    commands+=("${install_commands[@]}")
    [ ${#commands[@]} -gt 0 ] || return 0

    if [ -n "$blocked" ]; then
        printf '%s has missing requirements. To install them, run:\n' "$0" >&2
        printf '    %s\n' "${commands[@]}" >&2
        exit 1
    fi
    for command in "${commands[@]}"; do
        printf '== install: %s\n' "$command"
        bash -c "$command" || {
            echo "The installation failed. Correct the cause above, then run $0 again." >&2
            exit 1
        }
    done
    # These packages start servers on well-known ports if systemd is running.
    for command in prometheus haproxy nginx caddy; do
        [[ ! -d /run/systemd/system || " ${missing_packages[*]} " != *" $command "* ]] ||
            bash -c "${sudo}systemctl disable --now --quiet $command"
    done
}
