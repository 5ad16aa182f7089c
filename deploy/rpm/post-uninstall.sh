if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || :
fi
if [ "$1" = 0 ] && [ -d /var/lib/animal-store ]; then
    echo 'The pets and API keys are kept in /var/lib/animal-store. To delete them and their user:'
    echo '    rm -r /var/lib/animal-store && userdel animal-store'
fi
