# SPDX-License-Identifier: Apache-2.0
# Hosts for benchmarks of operations: each with an OpenSSH server of its own, which has its own
# address, port, host key, user and home. Needs no rights: all of it is in a user namespace.
#
#   hosts.sh namespaces FOLDER COUNT SSHD   each in a network namespace of its own, 10.99.0.N
#   hosts.sh loopback FOLDER COUNT SSHD     all on one loopback, 127.0.0.(N+1)
#   hosts.sh folders FOLDER                 no servers: folders act as hosts
#
# FOLDER/hN/ has the configuration of host N. It says "ready" when all servers run, and ends with a
# line on its standard input, or with that input. Then everything is killed whose environment names
# FOLDER, which is what was started on the hosts, however the benchmark ended.
set -eu

kind=$1 folder=$2 count=${3-0} sshd=${4-} number=${5-}
servers=''

as_user() { # N
    mount --bind "$folder/h$1/passwd" /etc/passwd
    export HOME="$folder/h$1/home"
    exec unshare -U --map-user=1000 --map-group=1000 "$sshd" -D -e -f "$folder/h$1/sshd_config" \
        </dev/null >/dev/null 2>"$folder/h$1/sshd.log"
}

find_ours() { # processes that end meanwhile are no reason to fail
    ours=$(grep -lsF -e "$folder/" /proc/[0-9]*/environ) || :
}
end() {
    # A server writes its title where its environment was.
    for pid in $servers; do kill -9 "$pid" 2>/dev/null || :; done
    find_ours
    while [ -n "$ours" ]; do
        for file in $ours; do
            pid=${file#/proc/}
            kill -9 "${pid%/environ}" 2>/dev/null || :
        done
        sleep 0.05
        find_ours
    done
}

case $kind in
one_namespace)
    until ip link show eth0 >/dev/null 2>&1; do sleep 0.02; done
    ip link set lo up
    ip addr add "10.99.0.$number/24" dev eth0
    ip link set eth0 up
    as_user "$number"
    ;;
one_loopback)
    as_user "$number"
    ;;
namespaces)
    trap end EXIT
    own=$(readlink /proc/self/ns/net)
    ip link set lo up
    ip link add name hosts type bridge
    ip addr add 10.99.0.254/24 dev hosts
    ip link set hosts up
    for n in $(seq "$count"); do
        unshare -n -m sh "$0" one_namespace "$folder" "$count" "$sshd" "$n" &
        child=$!
        servers="$servers $child"
        while [ "$(readlink "/proc/$child/ns/net")" = "$own" ]; do sleep 0.02; done
        ip link add name "h$n" type veth peer name eth0 netns "$child"
        ip link set "h$n" master hosts up
    done
    ;;
loopback)
    trap end EXIT
    for n in $(seq "$count"); do
        unshare -m sh "$0" one_loopback "$folder" "$count" "$sshd" "$n" &
        servers="$servers $!"
    done
    ;;
folders)
    trap end EXIT
    ;;
esac
for n in $(seq "$count"); do
    until grep -qs 'Server listening' "$folder/h$n/sshd.log"; do sleep 0.05; done
done
echo ready
read -r _ || :
