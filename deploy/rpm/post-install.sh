install -d -m 0700 -o animal-store -g animal-store /var/lib/animal-store
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || :
    if [ "$1" = 1 ]; then
        systemctl preset animal-store.socket animal-store.service || :
    else
        # Only the service is restarted: connections wait in the socket meanwhile.
        systemctl try-restart animal-store.service || :
    fi
fi
