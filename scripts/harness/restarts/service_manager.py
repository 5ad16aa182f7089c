"""The part of systemd: it owns the listening socket, passes it to each process, and waits for its notifications."""

import asyncio
import os
import signal
import socket
from pathlib import Path

from harness.servers import START_TIMEOUT
from harness.service import Instance

# LISTEN_PID is the process id after the fork. The socket arrives as standard input, and is passed as descriptor 3.
PASS_SOCKET = 'export LISTEN_PID=$$; exec "$@" 3<&0 </dev/null'


class ActivatedService(Instance):
    """`animal-store serve` on a socket that outlives it, with pets and keys in one SQLite file."""

    def __init__(self, folder: Path, name: str, program: Path, settings: dict[str, object]):
        super().__init__(folder, name, program, settings)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = self.listener.getsockname()[1]
        self.notifications = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.notifications.bind(str(folder / "notify"))
        self.options["env"] |= {"LISTEN_FDS": "1", "NOTIFY_SOCKET": str(folder / "notify")}
        del self.options["env"]["ANIMAL_STORE_HTTP__LISTEN"]
        self.command = ["/bin/sh", "-c", PASS_SOCKET, "sh", *self.command]

    async def start(self) -> None:
        """Returns when the process notifies that it is ready."""
        await self.spawn(stdin=self.listener)
        async with asyncio.timeout(START_TIMEOUT):
            lines = []
            while "READY=1" not in lines:
                lines = (await asyncio.get_running_loop().sock_recv(self.notifications, 4096)).decode().split("\n")

    async def reload(self) -> None:
        """Returns when the log has the outcome."""
        with self.log.open() as log:
            log.seek(0, os.SEEK_END)
            self.process.send_signal(signal.SIGHUP)
            lines = ""
            async with asyncio.timeout(START_TIMEOUT):
                while '"SIGHUP: ' not in lines:
                    lines += log.read()
                    await asyncio.sleep(0.01)

    async def discard(self) -> None:
        await super().discard()
        self.listener.close()
        self.notifications.close()
