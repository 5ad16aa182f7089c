"""A container of systemd-nspawn with the systemd of the running Debian release, without a network."""

import contextlib
import os
import platform
import re
from pathlib import Path

from harness.servers import CommandError, Server, children, run
from harness.tool import call, target_folder

SUDO = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
BASE = ["--variant=minbase", "--include=adduser,dbus,procps,sqlite3,systemd-sysv"]


class Container(Server):
    """Its log has the journal."""

    def __init__(self, folder: Path):
        self.root = folder / "root"
        command = [*SUDO, "systemd-nspawn", "--quiet", f"--directory={self.root}", "--register=no", "--keep-unit"]
        command += ["--private-network", "--console=pipe", "--boot", "systemd.journald.forward_to_console=1"]
        super().__init__(folder, "container", 0, command)

    async def install_base(self) -> None:
        """The Debian packages are kept in target/check-package."""
        codename, cache = platform.freedesktop_os_release()["VERSION_CODENAME"], target_folder() / "check-package"
        cache.mkdir(parents=True, exist_ok=True)
        indexes = ["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"]
        mirror = re.search(rf"^{codename} (.*)$", await run(*indexes), re.MULTILINE)[1]
        await run(*SUDO, "debootstrap", f"--cache-dir={cache.resolve()}", *BASE, codename, self.root, mirror)

    @property
    def first_process(self) -> int | None:
        process = [self.pid]
        for _ in range(len(SUDO[:1]) + 1):
            process = process and children(process[0])
        return process[0] if process else None

    async def is_ready(self) -> bool:
        with contextlib.suppress(CommandError):
            return bool(self.first_process) and await self.run("systemctl is-system-running") == "running"
        return False

    async def reboot(self) -> None:
        await self.run("systemctl reboot")
        await self.process.wait()
        await self.start()

    async def discard(self) -> None:
        # The end of its first process is the end of all processes of the container, and of its mounts.
        if self.process and (process := self.first_process):
            call(*SUDO, "kill", "-KILL", process)
            await self.process.wait()

    def enter(self, *spaces: str) -> list:
        return [*SUDO, "nsenter", "--target", self.first_process, "--net", *spaces]

    async def run(self, script: str) -> str:
        """Returns the output of a shell script in the container."""
        inside = self.enter("--mount", "--uts", "--ipc", "--pid", "--cgroup", "--root", "--wdns=/")
        environment = ["env", "--ignore-environment", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
        return (await run(*inside, *environment, "sh", "-ec", script)).strip()
