"""The part of systemd: it owns the listening socket, passes it to each process, and waits for its notifications."""

import asyncio
import os
import signal
import socket
from pathlib import Path

from soak.http_client import Connection
from soak.servers import START_TIMEOUT, Server, free_port, run

# LISTEN_PID is the process id after the fork. The socket arrives as standard input, and is passed as descriptor 3.
PASS_SOCKET = 'export LISTEN_PID=$$; exec "$@" 3<&0 </dev/null'


class NotifySocket:
    """The socket of sd_notify(3)."""

    def __init__(self, path: Path):
        self.path, self.socket = path, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(str(path))

    async def wait_for(self, state: str) -> None:
        async with asyncio.timeout(START_TIMEOUT):
            while state not in (await asyncio.get_running_loop().sock_recv(self.socket, 4096)).decode().split("\n"):
                pass


class ActivatedService(Server):
    """`animal-store serve` on a socket that outlives it, with pets and keys in one SQLite file."""

    def __init__(self, folder: Path, program: Path, **settings: str):
        self.program, self.listener = program, socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = self.listener.getsockname()[1]
        self.notifications = NotifySocket(folder / "notify")
        self.management_port = free_port()
        self.settings = {
            "ANIMAL_STORE_MANAGEMENT__LISTEN": f"127.0.0.1:{self.management_port}",
            "ANIMAL_STORE_LOG__FORMAT": "json",
            **settings,
        }
        environment = self.settings | {"LISTEN_FDS": "1", "NOTIFY_SOCKET": str(self.notifications.path)}
        super().__init__(folder, "service", ["/bin/sh", "-c", PASS_SOCKET, "sh", program, "serve"], env=environment)

    async def create_key(self) -> str:
        """Returns the token of a new key."""
        command = self.program, "keys", "create", "--create", "--label", "restarts"
        return (await run(*command, env=self.settings, cwd=self.folder)).strip()

    async def start(self) -> None:
        with self.log.open("a") as output:
            self.process = await asyncio.create_subprocess_exec(
                *map(str, self.command), stdin=self.listener, stdout=output, stderr=output, cwd=self.folder,
                start_new_session=True, **self.options,
            )
        await self.notifications.wait_for("READY=1")

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

    async def restart(self, number: signal.Signals) -> int:
        """Returns the exit code of the process that ended."""
        code = await self.stop(number)
        await self.start()
        return code

    async def connect(self) -> Connection:
        """Opens a connection to the socket, whether or not a process accepts it at the moment."""
        return await Connection.open(self.port)

    async def discard(self) -> None:
        await super().discard()
        self.listener.close()
        self.notifications.socket.close()
