"""What the logs of the instances say: panics, dropped lines, and the lines of violations."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from soak.instances import Instance
from soak.journal import Journal


@dataclass
class LogFindings:
    panics: list[str] = field(default_factory=list)
    dropped: int = 0
    # The log line of each request id that is an example of a violation.
    lines: dict[str, str] = field(default_factory=dict)


def read_logs(instances: list[Instance], journal: Journal) -> LogFindings:
    findings = LogFindings()
    wanted = {violation.request_id for violation in journal.examples} - {""}
    for instance in instances:
        for line in read_lines(instance.log):
            if '"request_id":"' in line:
                request_id = line.partition('"request_id":"')[2].partition('"')[0]
                if request_id in wanted:
                    findings.lines[request_id] = line
            if "panic" in line:
                findings.panics.append(line)
            elif '"dropped":' in line:
                findings.dropped += json.loads(line)["dropped"]
    return findings


def read_lines(log: Path):
    with log.open() as lines:
        for line in lines:
            yield line.rstrip("\n")
