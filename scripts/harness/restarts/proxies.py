"""nginx, Caddy, HAProxy and PgBouncer with the files of deploy/proxies, with other addresses and paths."""

import os
import signal
import ssl
from pathlib import Path

from harness.http_client import Connection
from harness.servers import HERE, Machine, Server, as_postgres, free_port
from harness.service import Instance
from harness.tool import REPOSITORY

HOST = "shop.example"
FILES = REPOSITORY / "deploy/proxies"
TEMPORARY_FILES_OF_NGINX = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def configuration(name: str, values: dict[str, object]) -> str:
    """The text of a file with substitutions, each of which must have an effect."""
    text = (FILES / name).read_text()
    for old, new in values.items():
        if old not in text:
            raise ValueError(f"deploy/proxies/{name} does not contain {old!r}")
        text = text.replace(old, str(new))
    return text


class ProxyProgram(Server):
    """A proxy with TLS on a port of 127.0.0.1."""

    def __init__(self, folder: Path, name: str, port: int, certificate: Path, command: list):
        # Servers of Debian are in a folder that is not in the PATH of every user.
        environment = {"PATH": f"{os.environ['PATH']}:/usr/sbin", "HOME": str(folder)}
        super().__init__(folder, name, port, command, env=environment)
        self.certificate = certificate
        self.tls = ssl.create_default_context(cafile=str(certificate))
        self.tls.set_alpn_protocols(["http/1.1"])

    async def connect(self) -> Connection:
        return await super().connect(ssl=self.tls, server_hostname=HOST)


class Nginx(ProxyProgram):
    last_signal = signal.SIGTERM  # ends its workers too

    def __init__(self, folder: Path, certificate: Path, service: Instance):
        port, file, general = free_port(), folder / "animal-store.conf", folder / "nginx.conf"
        user = "user root;" if os.geteuid() == 0 else ""
        temporary = "\n".join(f"    {name}_temp_path {folder};" for name in TEMPORARY_FILES_OF_NGINX)
        general.write_text(
            f"daemon off;\n{user}\npid {folder}/nginx.pid;\nevents {{}}\n"
            f"http {{\n{temporary}\n    include {file};\n}}\n"
        )
        file.write_text(configuration("nginx.conf", {
            "listen 443 ": f"listen 127.0.0.1:{port} ",
            "/etc/nginx/tls/shop.example.crt": certificate,
            "/etc/nginx/tls/shop.example.key": certificate,
            "/var/log/nginx/animal-store.log": folder / "access.log",
            "127.0.0.1:8080": f"127.0.0.1:{service.port}",
        }))
        super().__init__(folder, "nginx", port, certificate, ["nginx", "-p", folder, "-c", general, "-e", "stderr"])


class Caddy(ProxyProgram):
    def __init__(self, folder: Path, certificate: Path, service: Instance):
        port, file = free_port(), folder / "Caddyfile"
        local = "    admin off\n    auto_https disable_redirects\n    default_bind 127.0.0.1"
        file.write_text(configuration("Caddyfile", {
            "{\n\tservers {": f"{{\n{local}\n\tservers {{",
            "shop.example {": f"{HOST}:{port} {{\n\ttls {certificate} {certificate}",
            "127.0.0.1:8080": f"127.0.0.1:{service.port}",
        }))
        command = ["caddy", "run", "--config", file, "--adapter", "caddyfile"]
        super().__init__(folder, "caddy", port, certificate, command)


class HAProxy(ProxyProgram):
    def __init__(self, folder: Path, certificate: Path, a: Instance, b: Instance):
        port, file, general = free_port(), folder / "haproxy.cfg", folder / "global.cfg"
        general.write_text("global\n    log stdout format raw local0\n    maxconn 1000\n")
        file.write_text(configuration("haproxy.cfg", {
            "bind :443": f"bind 127.0.0.1:{port}",
            "/etc/haproxy/tls/shop.example.pem": certificate,
            "10.0.0.11:8080 port 8081": f"127.0.0.1:{a.port} port {a.management_port}",
            "10.0.0.12:8080 port 8081": f"127.0.0.1:{b.port} port {b.management_port}",
        }))
        command = ["haproxy", "-db", "-f", general, "-f", file]
        super().__init__(folder, "haproxy", port, certificate, command)

    async def notices(self, instance: Instance, state: str) -> None:
        """Waits for the next change of an instance to UP or DOWN."""
        await self.next_in_log(f"Server animal_store/{instance.name.lower()} is {state}")


class PgBouncer(Server):
    """A pooler in front of a database, which is a connection string without a user. Clients need no password."""

    def __init__(self, folder: Path, name: str, database: str, machine: Machine = HERE):
        port, home = free_port(), folder / name
        home.mkdir()
        self.file = home / "pgbouncer.ini"
        self.text = configuration("pgbouncer.ini", {
            "host=127.0.0.1 port=5432": f"{database} user=postgres",
            "127.0.0.1\nlisten_port = 6432": f"{machine.host}\nlisten_port = {port}",
            "scram-sha-256\nauth_file = /etc/pgbouncer/userlist.txt": "any",
        })
        self.file.write_text(self.text)
        super().__init__(home, "pgbouncer", port, as_postgres(home, "/usr/sbin/pgbouncer", self.file), machine)

    async def use_mode(self, mode: str) -> None:
        self.file.write_text(self.text.replace("pool_mode = transaction", f"pool_mode = {mode}"))
        if self.process:
            self.process.send_signal(signal.SIGHUP)
