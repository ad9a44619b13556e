#!/bin/sh
# What operations do on a host. Each verb may be repeated at any time, and mends what an earlier
# call left when it was killed.
#
# usage: sh host.sh BASE CLUSTER [since EPOCH] VERB [ARGUMENT ...]
#
# Of several services that may act one after the other each has an epoch, higher than those before.
# Once a host has heard of one, it does nothing for a lower one.
#
#   survey                   what is there, and what runs
#   fetch SHA SIZE [keep [FILE]]
#                            a release's archive on stdin: checked, unpacked beside, renamed; with
#                            keep it stays, and this host can give it to others
#   give SHA FOLDER          gives that to a host which is a folder of this machine
#   give SHA ADDRESS PORT [USER]
#                            gives it to a host over ssh, with the agent that was forwarded; its
#                            keys as for known_hosts, of a host called receiver, on stdin
#   lay_out ID ...           files of instances on stdin (tar), in a folder for each: made beside,
#                            moved, marked last; each is told or refused by itself
#   start ID SECONDS         returns when the instance is up, or says why it is not
#   stop ID SECONDS          asks, waits, and kills in the end; both run the hooks around
#                            it; only before_start can hold it up
#   hook ID NAME SECONDS     runs a command of the instance, if it has one of that name
#   remove ID                stops it and removes all that it has here
#   drop_release SHA         removes a release that no instance has
#   serve                    does calls that come as lines on stdin, side by side (see verb_serve)
#
# Answers are lines "ops KEY VALUE"; the last is "ops ok" or "ops error WHY". All other lines are
# complaints of the programs used. Needs: sh, the usual tools, GNU grep, tar, sha256sum, flock,
# setsid, /proc.
#
# BASE has releases/SHA/, archives/SHA and nodes/ID/ with
#   instance   what was laid out; written last, so without it nothing counts as laid out
#   home/      HOME, with .erlang.cookie
#   env        the environment, as shell commands
#   commands/  start, stop, check and the hooks, as shell commands
#   release/   the release's files (hard links), with the instance's own in their place; or, for
#              code that nothing is laid over, a link to the release
#   state/ log/  the instance's own; they stay when it is laid out again
#   started    it was started and not stopped since
#   pid        the process that it was started as, where that is known
#   bell       a FIFO, which code rings when it has booted
#
# Processes of an instance are known by their environment (SDERL_OPS_FOLDER), which they inherit
# and which names this one folder, so no other process can be taken for one and no file can lie.
set -eu
language=${LC_ALL-${LANG-}}
LC_ALL=C
export LC_ALL
umask 077
newline='
'

prefix='' number='' refusing=''
answer() { printf '%sops %s\n' "$prefix" "$*"; }
fail() { # WHY [WORD ...]
    [ -z "$refusing" ] || {
        answer refused "$refusing" "$@"
        exit 100
    }
    answer error "$@"
    exit 1
}

# A name that came from a file must not lead out of the folder.
is_name() {
    case $1 in
    '' | .* | *[!A-Za-z0-9._-]*) return 1 ;;
    esac
}
demand_name() { is_name "$1" || fail bad_name; }

# One call at a time for each instance and release. The lock ends with its holder, also when that
# is killed.
lock() { # NAME [SECONDS]
    [ -d "$base/locks" ] || mkdir -p "$base/locks"
    exec 9>"$base/locks/$1"
    flock -w "${2-10}" 9 || fail busy
    # Others may have waited for this lock, and one of a higher epoch have had it before.
    heed_epoch
}

heed_epoch() {
    [ -n "$epoch" ] || return 0
    read_epoch
    [ "$epoch" -ne "$heard" ] || return 0
    mkdir -p "$base/locks"
    exec 7>"$base/locks/epoch"
    flock -w 10 7 || fail busy
    read_epoch
    [ "$epoch" -ge "$heard" ] || fail deposed "$heard"
    echo "$epoch" >"$base/.epoch"
    mv "$base/.epoch" "$base/epoch"
    exec 7>&-
}
# What a crash of the machine left of the file may be anything.
read_epoch() {
    heard=''
    [ ! -f "$base/epoch" ] || read -r heard <"$base/epoch" || :
    case $heard in '' | *[!0-9]*) heard=0 ;; esac
}

# ---------------------------------------------------------------- processes

# The port mapper is the machine's, and has the environment of whichever instance happened to
# start it. A process that has just ended is taken for one, too.
is_epmd() { # /proc/PID
    { read -r name <"$1/comm"; } 2>/dev/null || return 0
    [ "$name" = epmd ]
}

# Process numbers with this in their environment. One that has just forked, or is becoming another
# program, can be missed, so there are none only when that is seen twice.
processes_with() { # NAME=VALUE
    look_for "$1"
    [ -n "$found" ] || look_for "$1"
}
look_for() { # NAME=VALUE
    found=''
    # shellcheck disable=SC2013 # words of /proc have no spaces
    for file in $(grep -lsxzF -e "$1" /proc/[0-9]*/environ); do
        file=${file%/environ}
        is_epmd "$file" || found="$found ${file#/proc/}"
    done
}
find_instance() { processes_with "SDERL_OPS_FOLDER=$node"; }
# The mark is there before the first process is, and goes when none is left.
find_started() {
    found=''
    [ ! -e "$node/started" ] || find_instance
}

# Of the processes found those whose parent is none of them.
roots() {
    top=''
    for pid in $found; do
        parent=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status" 2>/dev/null) || continue
        case " $found " in
        *" $parent "*) ;;
        *) top="$top $pid" ;;
        esac
    done
}

# A process may fork while it is looked for, so until none is left.
kill_with() { # NAME=VALUE
    rounds=0
    processes_with "$1"
    while [ -n "$found" ]; do
        # shellcheck disable=SC2086 # a list of numbers
        kill -9 $found 2>/dev/null || :
        rounds=$((rounds + 1))
        [ "$rounds" -lt 100 ] || fail cannot_kill
        sleep 0.05
        processes_with "$1"
    done
}
kill_instance() { kill_with "SDERL_OPS_FOLDER=$node"; }

# Of the machine's own clock, and without a program: it is asked for again and again.
look_at_clock() {
    read -r now _ </proc/uptime
    now=${now%%.*}
}

# ---------------------------------------------------------------- an instance

use_instance() { # ID
    demand_name "$1"
    id=$1
    node=$base/nodes/$id
    release_sha='' settings='' wait_for=settle
    release=$node/release
}

read_instance() {
    [ -f "$node/instance" ] || fail not_laid_out
    while read -r key value; do
        case $key in
        release) release_sha=$value ;;
        settings) settings=$value ;;
        wait_for) wait_for=$value ;;
        esac
    done <"$node/instance"
}

# As a survey does: who is told need not look again.
tell_instance() { # STATE
    read_instance
    answer instance "$id" "$1" "${release_sha:--}" "${settings:--}"
}

# shellcheck disable=SC2016 # for the shell that is started
with_environment='. "$0/env" && . "$0/commands/$1"'

# Runs one of the instance's commands, in the folder of its release. Nothing of the caller's
# environment reaches it but what every program needs. Sets status: a number, or late.
run_command() { # NAME SECONDS NAME=VALUE
    outcome=$node/.outcome.$$.$number
    [ ! -s "$outcome" ] || : >"$outcome"
    [ -d "$node/log" ] && [ -d "$node/state" ] || mkdir -p "$node/log" "$node/state"
    (
        set +e
        cd "$release" || exit
        env -i PATH="$PATH" LANG="${language:-C.UTF-8}" HOME="$node/home" \
            ${USER+"USER=$USER"} ${LOGNAME+"LOGNAME=$LOGNAME"} ${SHELL+"SHELL=$SHELL"} \
            ${TZ+"TZ=$TZ"} ${TMPDIR+"TMPDIR=$TMPDIR"} \
            ${ERL_EPMD_PORT+"ERL_EPMD_PORT=$ERL_EPMD_PORT"} \
            ${ERL_EPMD_ADDRESS+"ERL_EPMD_ADDRESS=$ERL_EPMD_ADDRESS"} \
            SDERL_OPS_INSTANCE="$cluster/$id" SDERL_OPS_RELEASE="$release" \
            SDERL_OPS_HOME="$node" SDERL_OPS_LOG="$node/log" SDERL_OPS_STATE="$node/state" "$3" \
            sh -c "$with_environment" "$node" "$1"
        echo "$?" >"$outcome"
    ) </dev/null >"$node/log/$1.log" 2>&1 9>&- 8>&- &
    runner=$!
    look_at_clock
    deadline=$((now + $2)) pause=0.02
    while [ ! -s "$outcome" ]; do
        look_at_clock
        if [ "$now" -gt "$deadline" ]; then
            kill_with "$3"
            # What it would say now is no outcome of the next.
            kill -9 "$runner" 2>/dev/null || :
            wait "$runner" || :
            status=late
            return
        fi
        sleep "$pause"
        pause=0.1
    done
    read -r status <"$outcome"
}

run_hook() { # NAME SECONDS
    [ -f "$node/commands/$1" ] || return 0
    run_command "$1" "$2" "SDERL_OPS_TASK=$node/$1"
    [ "$status" != 0 ] || return 0
    tail -n 8 "$node/log/$1.log" | cut -c1-400 | sed "s/^/${prefix}ops tail $id /"
    [ "$status" != late ] || fail hook_late "$1" "$2"
    fail hook_failed "$1" "$status"
}

# One that must not hold up what it stands around.
try_hook() { # NAME SECONDS
    [ -f "$node/commands/$1" ] || return 0
    run_command "$1" "$2" "SDERL_OPS_TASK=$node/$1"
    [ "$status" = 0 ] || answer complaint "$1" "$status"
}

# The last lines of what the instance wrote since it was started.
tell_tail() {
    newest=$(
        cd "$node/log" 2>/dev/null || exit 0
        # shellcheck disable=SC2012 # the names are logs; they are sorted by time
        ls -t | head -n 20 | while read -r file; do
            # shellcheck disable=SC3013 # every sh that there is has -nt
            [ ! -s "$file" ] || [ ! -f "$file" ] || [ "$node/started" -nt "$file" ] ||
                [ "$file" = erl_crash.dump ] || {
                printf '%s\n' "$file"
                break
            }
        done
    ) || :
    [ -z "$newest" ] || tail -n 8 "$node/log/$newest" | cut -c1-400 | sed "s/^/${prefix}ops tail $id /"
}

# ---------------------------------------------------------------- verbs

verb_survey() {
    # A session is begun after a survey by itself.
    [ -n "$prefix" ] || demand_tools
    answer base "$base"
    drop_unfinished
    for folder in "$base"/releases/*; do
        [ ! -d "$folder" ] || answer release "${folder##*/}"
    done
    for file in "$base"/archives/*; do
        [ ! -f "$file" ] || [ ! -d "$base/releases/${file##*/}" ] || answer archive "${file##*/}"
    done
    # All at once, as a host may have many instances; and of its processes only those that instances
    # were started as, as it may have many more. One that is not found so is looked for everywhere.
    set --
    for file in "$base"/nodes/*/pid; do
        [ ! -s "$file" ] || ! read -r pid <"$file" || set -- "$@" "/proc/$pid/environ"
    done
    case $base in
    *[!A-Za-z0-9/_-]*) mark=$(printf '%s' "$base" | sed 's/[][\.*^$]/\\&/g') ;;
    *) mark=$base ;;
    esac
    mark=SDERL_OPS_FOLDER=$mark/nodes/
    running=$([ "$#" = 0 ] || grep -soazH -e "^$mark.*" "$@" | tr '\0' '\n' |
        while IFS=: read -r file mark; do
            is_epmd "${file%/environ}" || printf '%s\n' "$mark"
        done) || :
    for folder in "$base"/nodes/*; do
        [ -d "$folder" ] || continue
        use_instance "${folder##*/}"
        [ ! -f "$node/instance" ] || read_instance
        state=laid_out
        case "$newline$running$newline" in
        *"${newline}SDERL_OPS_FOLDER=$node$newline"*) state=running ;;
        *)
            if [ -f "$node/started" ]; then
                find_instance
                state=exited
                [ -z "$found" ] || state=running
            fi
            ;;
        esac
        answer instance "$id" "$state" "${release_sha:--}" "${settings:--}"
        [ "$state" != exited ] || tell_tail
    done
}

demand_tools() {
    for tool in tar sha256sum grep flock setsid sed find cut tail; do
        command -v "$tool" >/dev/null || fail lacks "$tool"
    done
    printf 'probe\0' | grep -qxzF probe 2>/dev/null || fail lacks "GNU grep"
}

# What comes in is written to a file. A sender that stands still for so many seconds is given up:
# nothing else tells, when it is not the service.
patience=15
receive() { # FILE
    exec 3<&0
    cat <&3 >"$1" 9>&- &
    reader=$!
    exec 3<&-
    (
        before=-1 still=0
        while [ "$still" -lt "$patience" ]; do
            sleep 1
            kill -0 "$reader" || exit 0
            now=$(wc -c <"$1")
            if [ "$now" = "$before" ]; then still=$((still + 1)); else still=0; fi
            before=$now
        done
        kill -9 "$reader"
    ) </dev/null >/dev/null 2>&1 9>&- &
    watch=$!
    status=0
    wait "$reader" || status=$?
    kill "$watch" 2>/dev/null || :
    # Killed, it is short of something.
    [ "$status" = 0 ] || [ "$status" = 137 ] || exit "$status"
}

# While another call brings it, this one waits until that has done so, or failed. A file of this
# machine need not be read from stdin.
verb_fetch() { # SHA SIZE [keep [FILE]]
    demand_name "$1"
    [ ! -d "$base/releases/$1" ] || return 0
    lock "release-$1" 840
    [ ! -d "$base/releases/$1" ] || return 0
    mkdir -p "$base/releases"
    part=$base/releases/.$1
    rm -rf "$part"
    mkdir "$part"
    left=$part
    [ -n "${4-}" ] && ln "$4" "$part/archive" 2>/dev/null || receive "$part/archive"
    size=$(wc -c <"$part/archive")
    [ "$size" -eq "$2" ] || fail cut_off "$((size))" "$2"
    sum=$(sha256sum <"$part/archive")
    [ "${sum%% *}" = "$1" ] || fail wrong_checksum "${sum%% *}"
    mkdir "$part/new"
    tar -xof "$part/archive" -C "$part/new"
    # Instances have hard links to these: a file must be replaced, and not written into.
    find "$part/new" -type f -exec chmod a-w {} +
    [ "${3-}" != keep ] || {
        mkdir -p "$base/archives"
        mv -f "$part/archive" "$base/archives/$1"
    }
    mv "$part/new" "$base/releases/$1"
}

# Several may be given to at a time; what is given is not dropped meanwhile.
verb_give() { # SHA FOLDER | SHA ADDRESS PORT [USER]
    demand_name "$1"
    mkdir -p "$base/locks"
    exec 9>"$base/locks/release-$1"
    flock -s -w 10 9 || fail relay giver busy
    archive=$base/archives/$1
    [ -f "$archive" ] && [ -d "$base/releases/$1" ] || fail relay giver no_archive "$1"
    size=$(($(wc -c <"$archive")))
    for folder in "$base"/.give.*; do
        [ ! -d "$folder" ] || [ -d "/proc/${folder##*.}" ] || rm -rf "$folder"
    done
    give=$base/.give.$$
    rm -rf "$give"
    mkdir "$give"
    left=$give
    # Whatever the other side says, little of it is kept.
    {
        status=0
        if [ "$#" = 2 ]; then
            sh "$0" "$2" "$cluster" ${epoch:+since "$epoch"} fetch "$1" "$size" keep "$archive" \
                2>&1 <"$archive" 9>&- || status=$?
        else
            cat >"$give/known_hosts"
            give_over_ssh "$@" 2>&1 <"$archive" 9>&- || status=$?
        fi
        echo "$status" >"$give/status"
    } | {
        head -c 8192 >"$give/said"
        cat >/dev/null
    }
    status=$(cat "$give/status")
    said=$(grep '^ops ' "$give/said" | tail -n 1) || :
    [ "$said" != 'ops ok' ] || return 0
    grep -v '^ops ' "$give/said" | tail -n 4 | cut -c1-400 || :
    # shellcheck disable=SC2086 # words
    case $said in
    'ops error wrong_checksum '*)
        sum=$(sha256sum <"$archive")
        [ "${sum%% *}" = "$1" ] || {
            rm -f "$archive"
            fail relay giver wrong_checksum "${sum%% *}"
        }
        fail relay link ${said#ops error }
        ;;
    'ops error cut_off'*) fail relay link ${said#ops error } ;;
    'ops error '*) fail relay receiver ${said#ops error } ;;
    esac
    case $status in
    255) fail relay link ssh ;;
    119) fail relay link no_script ;;
    127) fail relay giver lacks ssh ;;
    *) fail relay receiver failed ;;
    esac
}

# The script lies there under the same name: the service has looked at that host with it.
give_over_ssh() { # SHA ADDRESS PORT [USER]
    command -v ssh >/dev/null || return 127
    case $0$given in
    *[!A-Za-z0-9._/-]*) return 119 ;;
    esac
    call="sh $0 $given $cluster ${epoch:+since $epoch }fetch $1 $size keep"
    ssh -T -p "$3" ${4+-l "$4"} \
        -o BatchMode=yes -o StrictHostKeyChecking=yes -o UpdateHostKeys=no -o CheckHostIP=no \
        -o HostKeyAlias=receiver -o "UserKnownHostsFile=\"$give/known_hosts\"" \
        -o GlobalKnownHostsFile=none -o VerifyHostKeyDNS=no \
        -o IdentityFile=none -o IdentitiesOnly=no -o PreferredAuthentications=publickey \
        -o ConnectTimeout=15 -o ServerAliveInterval=5 -o ServerAliveCountMax=3 \
        -o ClearAllForwardings=yes -o ForwardAgent=no -o ForwardX11=no \
        -o ControlMaster=no -o ControlPath=none -o PermitLocalCommand=no -o LogLevel=INFO \
        -- "$2" "exec sh -c '[ -f $0 ] || exit 119; exec $call'"
}

# Of each instance what is new is made beside, in a folder of this call. One that is not there yet
# comes into its place in one go; one that is there is put over under its lock.
verb_lay_out() { # ID ...
    for id in "$@"; do demand_name "$id"; done
    ids="$*" fresh='' over=''
    drop_unfinished
    new=$base/nodes/.new.$$.$number
    [ ! -d "$new" ] || rm -rf "$new"
    mkdir -p "$new"
    left=$new
    tar -xof - -C "$new"
    # It is the last file of the archive.
    for id in $ids; do [ -f "$new/$id/instance" ] || fail cut_off; done
    for id in $ids; do
        use_instance "$id"
        if [ -e "$node" ] || [ -L "$node" ]; then
            over="$over $id"
            continue
        fi
        read -r _ sha <"$new/$id/instance"
        # Code that nothing is laid over has a link, which came with it.
        if [ -L "$new/$id/release" ] && is_name "$sha" && [ -d "$base/releases/$sha" ]; then
            fresh="$fresh $id"
        else
            apart make_release
            [ "$status" != 0 ] || fresh="$fresh $id"
        fi
    done
    # Much time may have gone by while that came in.
    heed_epoch
    set --
    for id in $fresh; do set -- "$@" "$new/$id"; done
    # What another call has laid out meanwhile is not replaced by this.
    [ "$#" = 0 ] || mv "$@" "$base/nodes/" 2>/dev/null || :
    for id in $fresh; do
        use_instance "$id"
        if [ -d "$new/$id" ]; then over="$over $id"; else tell_instance laid_out; fi
    done
    for id in $over; do
        use_instance "$id"
        apart put_over
    done
}

# What calls have left that were killed; there are secrets in it. One that has ended and for whom
# nobody waits has no program.
drop_unfinished() {
    for folder in "$base"/nodes/.new.*; do
        pid=${folder##*/.new.}
        [ ! -d "$folder" ] || [ -e "/proc/${pid%%.*}/exe" ] || rm -rf "$folder"
    done
}

# For one of several instances: what is refused says so for that one alone; any other failure ends
# the call. Sets status, and is never a condition: there a shell goes on after a failure.
apart() { # FUNCTION
    set +e
    (
        set -e
        refusing=$id
        "$1"
    )
    status=$?
    set -e
    [ "$status" = 0 ] || [ "$status" = 100 ] || exit "$status"
}

make_release() {
    read -r _ sha <"$new/$id/instance"
    demand_name "$sha"
    [ -d "$base/releases/$sha" ] || fail no_release "$sha"
    [ ! -L "$new/$id/release" ] || return 0
    [ ! -d "$new/$id/release" ] || rm -rf "$new/$id/release"
    cp -Rpl "$base/releases/$sha" "$new/$id/release"
    # tar takes a file away before it makes one of that name, so the release keeps its own.
    [ ! -d "$new/$id/files" ] || {
        (cd "$new/$id/files" && tar -cf "$new/$id/files.tar" .)
        tar -xof "$new/$id/files.tar" -C "$new/$id/release"
        rm -rf "$new/$id/files" "$new/$id/files.tar"
    }
}

put_over() {
    lock "node-$id"
    find_started
    if [ -n "$found" ]; then
        [ -f "$node/instance" ] && [ "$(cat "$new/$id/instance")" = "$(cat "$node/instance")" ] ||
            fail running
        tell_instance running
        return 0
    fi
    make_release
    # What is marked goes first and what marks comes last.
    [ ! -e "$node/instance" ] || rm -f "$node/instance"
    [ -d "$node/state" ] && [ -d "$node/log" ] || mkdir -p "$node/state" "$node/log"
    rm -rf "$node"/.outcome.*
    set -- started booted pid home env commands release sys.config bell
    for part in "$@"; do
        shift
        [ ! -e "$node/$part" ] && [ ! -L "$node/$part" ] || set -- "$@" "$node/$part"
    done
    [ "$#" = 0 ] || rm -rf "$@"
    set -- home env commands release sys.config bell
    for part in "$@"; do
        shift
        [ ! -e "$new/$id/$part" ] && [ ! -L "$new/$id/$part" ] || set -- "$@" "$new/$id/$part"
    done
    mv "$@" "$node/"
    mv "$new/$id/instance" "$node/instance"
    tell_instance laid_out
}

verb_start() { # ID SECONDS
    use_instance "$1"
    seconds=$2
    lock "node-$id"
    read_instance
    find_started
    [ -z "$found" ] || {
        tell_instance running
        return 0
    }
    [ -d "$release/." ] || fail no_release "$release_sha"
    [ ! -e "$node/booted" ] && [ ! -e "$node/pid" ] || rm -f "$node/booted" "$node/pid"
    run_hook before_start "$seconds"
    look_at_clock
    began=$now
    [ ! -p "$node/bell" ] || exec 8<>"$node/bell"
    : >"$node/started"
    run_command start "$seconds" "SDERL_OPS_FOLDER=$node"
    case $status in
    0) ;;
    late)
        tell_tail
        rm -f "$node/started"
        fail start_late "$seconds"
        ;;
    *)
        kill_instance
        tell_tail
        rm -f "$node/started"
        fail start_failed "$status"
        ;;
    esac
    await_start
    run_hook after_start "$seconds"
    tell_instance running
}

await_start() {
    rounds=0 missed=0 has_bell=''
    [ ! -p "$node/bell" ] || [ "$wait_for" != booted ] || has_bell=yes
    while :; do
        [ "$wait_for" != booted ] || [ ! -e "$node/booted" ] || return 0
        if is_alive; then missed=0; else missed=$((missed + 1)); fi
        if [ "$missed" -ge 3 ]; then
            tell_tail
            rm -f "$node/started"
            fail died
        fi
        case $wait_for in
        booted) ;;
        check)
            run_command check "$seconds" "SDERL_OPS_TASK=$node/check"
            [ "$status" != 0 ] || return 0
            ;;
        # Long enough to see a program that cannot run at all.
        *) [ "$rounds" -lt 6 ] || [ "$missed" -gt 0 ] || return 0 ;;
        esac
        look_at_clock
        if [ "$now" -gt "$((began + seconds))" ]; then
            kill_instance
            tell_tail
            rm -f "$node/started"
            fail start_late "$seconds"
        fi
        rounds=$((rounds + 1))
        if [ "$missed" = 0 ] && [ -n "$has_bell" ]; then await_bell; else sleep 0.1; fi
    done
}
# Until it is rung, or for a second. So a node that boots costs no program for each tenth of one.
await_bell() {
    status=0
    timeout 1 head -c 1 <&8 >/dev/null 2>&1 || status=$?
    [ "$status" = 0 ] || [ "$status" = 124 ] || has_bell=''
}
# To look for its processes costs by all that there are. While the one that it was started as is
# there, it need not be.
is_alive() {
    if [ "$wait_for" = booted ] && [ -s "$node/pid" ] && read -r pid <"$node/pid" &&
        kill -0 "$pid" 2>/dev/null; then
        return 0
    fi
    find_instance
    [ -n "$found" ]
}

stop_instance() { # SECONDS
    find_instance
    [ -n "$found" ] || return 0
    look_at_clock
    deadline_stop=$((now + $1))
    if [ -f "$node/commands/stop" ] && [ -f "$node/instance" ] && [ "$1" -gt 0 ]; then
        read_instance
        run_command stop "$1" "SDERL_OPS_TASK=$node/stop"
        [ "$status" = 0 ] || answer complaint stop "$status"
        # One that failed is no reason to wait for what it would have done.
        [ "$status" = 0 ] || { find_instance; roots; kill_roots; }
    else
        roots
        kill_roots
    fi
    pause=0.05
    while :; do
        find_instance
        [ -n "$found" ] || return 0
        look_at_clock
        [ "$now" -le "$deadline_stop" ] || break
        sleep "$pause"
        pause=0.1
    done
    answer killed "$id"
    kill_instance
}
kill_roots() {
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$top" ] || kill -15 $top 2>/dev/null || :
}

verb_stop() { # ID SECONDS
    use_instance "$1"
    [ -d "$node" ] || return 0
    lock "node-$id"
    find_instance
    if [ -n "$found" ] && [ -f "$node/instance" ]; then
        read_instance
        try_hook before_stop "$2"
    fi
    stop_instance "$2"
    if [ -f "$node/started" ] && [ -f "$node/instance" ]; then
        read_instance
        try_hook after_stop "$2"
    fi
    rm -f "$node/started" "$node/booted" "$node/pid" "$node"/.outcome.*
}

verb_hook() { # ID NAME SECONDS
    use_instance "$1"
    demand_name "$2"
    lock "node-$id"
    read_instance
    [ -f "$node/commands/$2" ] || answer none "$2"
    run_hook "$2" "$3"
}

verb_remove() { # ID
    use_instance "$1"
    [ -d "$node" ] || return 0
    lock "node-$id"
    kill_instance
    for file in "$node"/commands/*; do kill_with "SDERL_OPS_TASK=$node/${file##*/}"; done
    rm -f "$node/instance"
    rm -rf "$node"
}

verb_drop_release() { # SHA
    demand_name "$1"
    [ -e "$base/releases/$1" ] || [ -e "$base/releases/.$1" ] || [ -e "$base/archives/$1" ] ||
        return 0
    lock "release-$1"
    for file in "$base"/nodes/*/instance; do
        [ ! -f "$file" ] || ! grep -qxF "release $1" "$file" ||
            fail in_use "$(basename "$(dirname "$file")")"
    done
    rm -rf "$base/releases/.$1" "$base/archives/$1"
    [ ! -d "$base/releases/$1" ] || mv "$base/releases/$1" "$base/releases/.$1"
    rm -rf "$base/releases/.$1"
}

# ---------------------------------------------------------------- many calls

# A call is a line "NUMBER BYTES [since EPOCH] VERB [ARGUMENT ...]" and then so many bytes for its
# stdin. It costs neither a connection nor a shell that reads all this. What it says has its number
# in front: answers, "- " and a complaint, and at its end "= " and its status.
verb_serve() {
    for file in "$base"/.call.*; do
        pid=${file#"$base"/.call.}
        [ ! -e "$file" ] || [ -d "/proc/${pid%%.*}" ] || rm -f "$file"
    done
    while read -r number bytes words && [ -n "$words" ]; do
        case $number$bytes$words in *[!A-Za-z0-9._\ -]*) fail bad_call ;; esac
        call=$base/.call.$$.$number input=/dev/null
        [ "$bytes" = 0 ] || {
            input=$call.in
            head -c "$bytes" >"$input"
        }
        (serve_call) <"$input" 2>"$call.said" &
        # The shell lets go of those that have ended.
        jobs >/dev/null
    done
    wait
    rm -f "$base/.call.$$".*
}
serve_call() {
    prefix="$number "
    trap end_call EXIT
    # shellcheck disable=SC2086 # words
    do_call $words
}
end_call() {
    status=$?
    [ -z "$left" ] || rm -rf "$left"
    # There may be secrets in it.
    [ "$bytes" = 0 ] || : >"$input"
    [ ! -s "$call.said" ] || while read -r line; do
        printf '%s- %s\n' "$prefix" "$line"
    done <"$call.said"
    printf '%s= %s\n' "$prefix" "$status"
}

# ---------------------------------------------------------------- begin

do_call() { # [since EPOCH] VERB [ARGUMENT ...]
    verb=$1
    shift
    if [ "$verb" = since ]; then
        epoch=$1 verb=$2
        shift 2
        case $epoch in '' | *[!0-9]*) fail bad_epoch ;; esac
    fi
    heed_epoch
    case $verb in
    survey | fetch | give | lay_out | start | stop | hook | remove | drop_release)
        "verb_$verb" "$@"
        ;;
    *) fail bad_verb ;;
    esac
    [ -z "$left" ] || rm -rf "$left"
    left=''
    answer ok
}

given=$1 cluster=$2 epoch=''
base=$given
shift 2
demand_name "$cluster"
[ -d "$base" ] || mkdir -p "$base"
base=$(cd "$base" && pwd -P)
left=''
trap '[ -z "$left" ] || rm -rf "$left"' EXIT
case $1 in
serve) verb_serve ;;
*) do_call "$@" ;;
esac
