if [ "$1" = 0 ] && [ -d /run/systemd/system ]; then
    systemctl disable --now animal-store.socket animal-store.service || :
fi
