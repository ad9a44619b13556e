# SPDX-License-Identifier: Apache-2.0
# Starts virtual machines on a host by a bare loop, as many at a time as is said: what operations
# are compared with. FOLDER has a copy of each instance as operations laid it out, with the release
# already there, so the same commands are run with the same environment.
#
#   bare.sh run FOLDER AT_ONCE   says "ready" to a first line, starts all with a second one, and
#                                says "done" when all have started their applications
#   bare.sh end FOLDER           kills them
set -eu

verb=$1 folder=$2

# The port mapper has the environment of whichever node started it. One that ends meanwhile is
# taken for it, too.
find_ours() {
    ours=''
    for file in $(grep -lsF -e "SDERL_BARE=$folder/" /proc/[0-9]*/environ); do
        file=${file%/environ}
        [ "$(cat "$file/comm" 2>/dev/null || echo epmd)" = epmd ] || ours="$ours ${file#/proc/}"
    done
}

case $verb in
one)
    node=$folder/$3
    cd "$node/release"
    env -i PATH="$PATH" LANG=C.UTF-8 HOME="$node/home" SDERL_BARE="$node" \
        ${ERL_EPMD_PORT+"ERL_EPMD_PORT=$ERL_EPMD_PORT"} SDERL_OPS_INSTANCE="bare/$3" \
        SDERL_OPS_RELEASE="$node/release" SDERL_OPS_HOME="$node" SDERL_OPS_LOG="$node/log" \
        SDERL_OPS_STATE="$node/state" sh -c '. "$0/env" && exec sh "$0/commands/start"' "$node" \
        </dev/null >/dev/null 2>&1
    # Operations are told by the node. To look more often costs the machine more than it gains.
    until [ -e "$node/booted" ]; do sleep 0.1; done
    ;;
run)
    read -r _
    rm -f "$folder"/*/booted
    echo ready
    read -r _
    ls "$folder" | xargs -n 1 -P "$3" sh "$0" one "$folder"
    echo done
    ;;
end)
    find_ours
    while [ -n "$ours" ]; do
        # shellcheck disable=SC2086 # a list of numbers
        kill -9 $ours 2>/dev/null || :
        sleep 0.05
        find_ours
    done
    ;;
esac
