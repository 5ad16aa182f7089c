# The container image of the animal store: docs/deployment.md, "Containers".
#
#     docker build --build-arg COMMIT="$(git rev-parse HEAD)" --tag animal-store:0.1.0 .
#
# Images are pinned by tag. A digest is stricter: FROM rust:1.95-slim-bookworm@sha256:…

FROM rust:1.95-slim-bookworm AS builder
# Adds the list of dependencies to the program, for scanners of images; the version is that of scripts/package.
RUN cargo install --locked --version 0.7.7 cargo-auditable
WORKDIR /src
COPY . .
# `--version` shows the commit.
ARG COMMIT=unknown
# The caches keep downloads and compiled dependencies. Crates of the workspace are compiled in each build, because cargo
# compares times of files, and those of a checkout do not say what has changed. It runs in the root of the workspace, so
# that .cargo/config.toml applies.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    find crates -type f -exec touch {} + && \
    ANIMAL_STORE_COMMIT="$COMMIT" cargo auditable build --config "$PWD/.cargo/hardened.toml" --release --locked \
        --package animal-store-server && \
    deploy/image/assemble target/release/animal-store /image

# For the backups of each night and for commands: with a shell and sqlite3. The libraries are those of the builder.
#
#     docker build --target tools --tag animal-store-tools:0.1.0 .
FROM debian:bookworm-slim AS tools
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install --yes --no-install-recommends ca-certificates sqlite3 && \
    rm -rf /var/lib/apt/lists/* && \
    install -d -o 65532 -g 65532 /backup
COPY --from=builder /image/usr/bin/animal-store /usr/bin/
COPY --from=builder /image/etc/animal-store/ /etc/animal-store/
COPY deploy/backup/animal-store-backup deploy/backup/animal-store-rehearse-restore /usr/bin/
USER 65532:65532
VOLUME /backup
CMD ["animal-store-backup", "/backup", "7"]

# No shell, no package manager: only what deploy/image/assemble lists.
FROM scratch
ARG VERSION=0.1.0
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="animal store" \
      org.opencontainers.image.description="A catalogue of pets as JSON over HTTP" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
COPY --from=builder /image /
# With a read-only root, temporary files of SQLite in a large migration are in the volume.
ENV PATH=/usr/bin SQLITE_TMPDIR=/var/lib/animal-store
# As a number, so that Kubernetes can check that it is not root.
USER 65532:65532
# The service, its health check and `animal-store keys` read animal-store.toml here.
WORKDIR /etc/animal-store
VOLUME /var/lib/animal-store
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["animal-store", "health"]
ENTRYPOINT ["animal-store"]
CMD ["serve"]
