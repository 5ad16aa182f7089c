getent group animal-store >/dev/null || groupadd --system animal-store
getent passwd animal-store >/dev/null ||
    useradd --system --gid animal-store --home-dir /var/lib/animal-store --no-create-home --shell /sbin/nologin \
        --comment 'animal store' animal-store
