"""The workloads: requests to the service, and the same queries for pgbench."""

import os
import re
import sys
from dataclasses import dataclass

from load import create_request, request_head
from servers import Postgres, Workplace, run, ticks_by_process, wait_for_end

# The settings of the service's connections.
PLANS = ["plan_cache_mode=force_generic_plan"]
PLANS += [f"{name}=off" for name in ("enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_nestloop", "jit")]
COLUMNS = "id, name, category_id, status"
PAGE = "?limit=20&status=available"


@dataclass(frozen=True)
class Workload:
    name: str
    request: str  # a Lua expression
    status: int
    sql: str = ""  # for pgbench


def reads(token: str, pets: int) -> list[Workload]:
    before, after = request_head("GET", "/ID", token).split("ID")
    return [
        Workload(
            "list",
            f"'{request_head('GET', PAGE, token)}'",
            200,
            f"SELECT {COLUMNS} FROM pets WHERE status BETWEEN :status AND :status AND id > :after "
            "ORDER BY status, id LIMIT :limit;",
        ),
        Workload(
            "get",
            f"'{before}' .. math.random({pets}) .. '{after}'",
            200,
            f"\\set id random(1, {pets})\nSELECT {COLUMNS} FROM pets WHERE id BETWEEN :id AND :id ORDER BY id;",
        ),
    ]


def writes(token: str) -> list[Workload]:
    return [
        Workload(
            "create",
            create_request(token),
            201,
            "\\set name random(1, 9000000000000000000)\n\\set category random(10, 99)\n"
            "INSERT INTO pets (name, category_id, status) VALUES (:name, :category, :status) RETURNING id;",
        ),
        Workload("create with a key", create_request(token, keyed=True), 201),
    ]


def pgbench(place: Workplace, postgres: Postgres, workload: Workload, clients: int, amount: str) -> tuple[int, float]:
    """Returns the number of transactions, and transactions per second.

    `amount` is `-T` with seconds, or `-t` with the transactions of each client.
    """
    script = place.folder / "pgbench.sql"
    script.write_text(workload.sql)
    load = ["-n", "-M", "prepared", "-c", str(clients), "-j", str(min(os.cpu_count(), clients)), amount]
    variables = ["-D", "status=1", "-D", "after=0", "-D", "limit=20"]
    environment = {"PGOPTIONS": " ".join(f"-c {plan}" for plan in PLANS)}
    command = [postgres.programs / "pgbench", *load, *variables, "-f", script, postgres.url("bench")]
    known = ticks_by_process(postgres.process.pid).keys()
    output = run(*command, env=environment)
    wait_for_end(ticks_by_process(postgres.process.pid).keys() - known)  # until the CPU time of the clients is complete
    rate = re.search(r"tps = ([\d.]+)", output) or sys.exit("pgbench ends before it is connected: use more --seconds")
    return int(re.search(r"processed: (\d+)", output)[1]), float(rate[1])
