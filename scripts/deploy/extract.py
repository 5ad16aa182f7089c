"""Writes what compose.yaml and deploy/kubernetes contain for the program, as files that a shell can use:

    extract.py FOLDER

NAME.env has the variables of a service or a container, kubernetes.toml is the file in the ConfigMap, secrets/ has the
example Secrets, and tls.yaml is the Deployment with the lines for TLS.
"""

import sys
from pathlib import Path

import yaml

folder = Path(sys.argv[1])
kubernetes = Path("deploy/kubernetes")


def write_variables(name: str, variables: dict[str, str]) -> None:
    lines = [f"{key}={value}\n" for key, value in variables.items() if key.startswith("ANIMAL_STORE_")]
    (folder / f"{name}.env").write_text("".join(lines))


def write_variables_of_containers(name: str, manifest: str) -> None:
    containers = yaml.safe_load(manifest)["spec"]["template"]["spec"]["containers"]
    items = [item for container in containers for item in container.get("env", [])]
    write_variables(name, {item["name"]: item["value"] for item in items})


services = yaml.safe_load(Path("compose.yaml").read_text())["services"]
for service, settings in services.items():
    if settings["image"].startswith("animal-store:"):
        write_variables(service, settings.get("environment", {}))

configuration = yaml.safe_load((kubernetes / "configmap.yaml").read_text())["data"]
(folder / "kubernetes.toml").write_text(configuration["animal-store.toml"])
for secret in yaml.safe_load_all((kubernetes / "secret.yaml").read_text()):
    (folder / "secrets" / secret["metadata"]["name"]).mkdir(parents=True)
    for key, value in secret["stringData"].items():
        (folder / "secrets" / secret["metadata"]["name"] / key).write_text(value)

write_variables_of_containers("kubernetes-migrate", (kubernetes / "migrate-job.yaml").read_text())
with_tls = (kubernetes / "deployment.yaml").read_text().replace("# tls: ", "")
(folder / "tls.yaml").write_text(with_tls)
write_variables_of_containers("kubernetes-tls", with_tls)
