"""Installs what a check needs. From a shell: scripts/harness/require c-compiler redis-server

With CHECK_INSTALL=0, the commands are printed instead, and the exit code is 1. The same happens if packages are missing
and the user is neither root nor has passwordless sudo.
"""

import fcntl
import os
import shutil
import subprocess
import sys

# Debian packages that have no program of their name: another one that they have.
PROGRAMS = {
    "binutils": "strip", "dpkg-dev": "dpkg-shlibdeps", "golang-go": "go", "iproute2": "ip", "nodejs": "node",
    "procps": "pkill", "prometheus-alertmanager": "amtool", "systemd-container": "systemd-nspawn", "xz-utils": "xz",
}
# Other requirements: the packages, and a command that succeeds if they are there.
PACKAGES = {
    # Rust needs a linker, and some dependencies compile C.
    "c-compiler": ("gcc libc6-dev", "echo '#include <stdlib.h>' | cc -fsyntax-only -x c -"),
    "jackson": ("libjackson2-databind-java", "ls /usr/share/java/jackson-databind.jar"),
    "jdk": ("default-jdk-headless", "command -v javac"),
    "postgresql": ("postgresql", "command -v psql && (command -v postgres || ls /usr/lib/postgresql/*/bin/postgres)"),
    "python3-pysyncobj": ("python3-pysyncobj", "/usr/bin/python3 -c 'import pysyncobj'"),
    "python3-venv": ("python3-venv", "python3 -c 'import ensurepip'"),
}
CARGO_TOOLS = {
    "cargo-auditable": "0.7.7", "cargo-cyclonedx": "0.5.9", "cargo-deb": "3.8.0", "cargo-deny": "0.20.2",
    "cargo-fuzz": "0.13.2", "cargo-mutants": "27.1.0",
}
RUST = {
    "rustfmt": ("rustup component add rustfmt", "cargo fmt --version"),
    "clippy": ("rustup component add clippy", "cargo clippy --version"),
    "nightly": ("rustup toolchain install --profile minimal nightly", "cargo +nightly --version"),
}
# Their packages start servers on well-known ports if systemd is running.
SERVERS = {"prometheus", "prometheus-alertmanager", "haproxy", "nginx", "caddy"}


def is_there(check: str) -> bool:
    environment = os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin"}
    return subprocess.run(["bash", "-ec", check], env=environment, capture_output=True).returncode == 0


def require(*names: str) -> None:
    # Checks run beside each other, and apt-get does not.
    with open(__file__) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install(*names)


def install(*names: str) -> None:
    if not shutil.which("cargo"):
        sys.exit("Rust is missing: install it from https://rustup.rs")
    packages, commands = [], []
    for name in names:
        if name in CARGO_TOOLS:
            # Not optimized: they compile in a third of the time, and are run seldom.
            install = (f"cargo install --locked --no-default-features --debug --config profile.dev.debug=0 {name} "
                       f"--version {CARGO_TOOLS[name]}")
            commands += [] if is_there(f"{name.replace('-', ' ')} --version") else [install]
        elif name in RUST:
            commands += [] if is_there(RUST[name][1]) else [RUST[name][0]]
        else:
            package, check = PACKAGES.get(name, (name, f"command -v {PROGRAMS.get(name, name)}"))
            packages += [] if is_there(check) else [package]
    sudo = "" if os.geteuid() == 0 else "sudo "
    if packages:
        # RUNLEVEL=1: without systemd, the installed servers do not start.
        commands.insert(0, f"{sudo}apt-get update -qq; {sudo}env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive "
                           f"apt-get install -y -qq --no-install-recommends {' '.join(packages)}")
        if os.path.isdir("/run/systemd/system"):
            commands += [f"{sudo}systemctl disable --now --quiet {server}" for server in SERVERS & {*packages}]
    blocked = os.environ.get("CHECK_INSTALL") == "0" or (packages and sudo and not is_there("sudo -n true"))
    if commands and blocked:
        sys.exit("\n    ".join([f"{sys.argv[0]} has missing requirements. To install them, run:", *commands]))
    for command in commands:
        print(f"== install: {command}", flush=True)
        if subprocess.run(["bash", "-c", command]).returncode:
            sys.exit(f"The installation failed. Correct the cause above, then run {sys.argv[0]} again.")


if __name__ == "__main__":
    require(*sys.argv[1:])
