#!/bin/sh
# Makes "hosts" for bin/sderl ops out of OpenSSH servers of this user on this machine: each has a
# port, a host key and a home of its own. What it shows is how such a program speaks; see
# docs/operations.md.
#
# usage: hosts.sh FOLDER     all that it keeps is in there: key.pub, and a folder for each host
#
# It reads one request, a line of JSON, and answers with lines of JSON. The service's requests have
# every key once and no space outside of texts, which is all that `field` and `names` rely on.
set -eu
folder=$1
mkdir -p "$folder"
cd "$folder"
folder=$(pwd -P)
read -r request

field() { printf '%s' "$request" | sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; }
names() { printf '%s' "$request" | sed -n 's/.*"hosts":\[\([^]]*\)\].*/\1/p' | tr -d '"' | tr ',' ' '; }

id=$(field id)
cluster=$(field cluster)
sshd=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v sshd) || sshd=

fail() {
    printf '{"id":"%s","error":"%s"}\n' "$id" "$1"
    exit 0
}

runs() { [ -f "$1/pid" ] && kill -0 "$(cat "$1/pid")" 2>/dev/null; }

# One host as JSON. What was begun and cut off before its port was known is not there yet.
tell() {
    state=running
    runs "$1" || state=gone
    read -r kind key _ <"$1/host_key.pub"
    printf '{"name":"%s","state":"%s","address":"127.0.0.1","port":%s,"host_key":"%s %s"}' \
        "${1##*/}" "$state" "$(cat "$1/port")" "$kind" "$key"
}

# A free port is found by trying; the server that has it says so.
create() {
    host=$cluster/$1
    if [ -f "$host/port" ]; then
        runs "$host" || fail "$1 has ended: it has to be taken away first"
        return
    fi
    [ -n "$sshd" ] || fail "there is no sshd on the PATH"
    rm -rf "$host"
    mkdir -p "$host/home"
    ssh-keygen -q -t ed25519 -N '' -C "$1" -f "$host/host_key" >&2
    port=$((20000 + $$ % 20000))
    tries=0
    while [ "$tries" -lt 20 ]; do
        {
            printf '%s\n' "ListenAddress 127.0.0.1" "Port $port" "HostKey $folder/$host/host_key" \
                "AuthorizedKeysFile $folder/key.pub" "PidFile $folder/$host/pid" \
                "StrictModes no" "UsePAM no" "PasswordAuthentication no" \
                "KbdInteractiveAuthentication no" \
                "ForceCommand HOME=$folder/$host/home; cd; eval \"\$SSH_ORIGINAL_COMMAND\"" \
                "SetEnv PATH=$PATH ERL_EPMD_PORT=${ERL_EPMD_PORT-4369}"
            cat "$folder/sshd_options" 2>/dev/null || :
        } >"$host/sshd_config"
        # It writes the file of its number when it listens, and ends where somebody else does. The
        # lock is not for it.
        setsid "$sshd" -D -e -f "$host/sshd_config" </dev/null >"$host/log" 2>&1 9>&- &
        while kill -0 "$!" 2>/dev/null && [ ! -s "$host/pid" ]; do sleep 0.1; done
        if [ -s "$host/pid" ] && runs "$host"; then
            printf '%s' "$port" >"$host/port.part"
            mv "$host/port.part" "$host/port"
            return
        fi
        port=$((port + 1))
        tries=$((tries + 1))
    done
    fail "no server started for $1: $(tail -n 1 "$host/log" | tr -d '"\\\r')"
}

delete() {
    host=$cluster/$1
    if runs "$host"; then kill "$(cat "$host/pid")"; fi
    rm -rf "$host"
}

# Two requests at the same time would look for the same port.
exec 9>lock
flock 9
case $(field do) in
list) wanted=$(ls "$cluster" 2>/dev/null || :) ;;
create)
    wanted=$(names)
    for name in $wanted; do
        printf '{"id":"%s","progress":"starts %s"}\n' "$id" "$name"
        create "$name"
    done
    ;;
delete)
    for name in $(names); do delete "$name"; done
    wanted=
    ;;
*) fail "this program lists, creates and deletes" ;;
esac
printf '{"id":"%s","hosts":[' "$id"
comma=
for name in $wanted; do
    [ -f "$cluster/$name/port" ] || continue
    printf '%s' "$comma"
    tell "$cluster/$name"
    comma=,
done
printf ']}\n'
