#!/bin/sh
# What a pod of "sderl ops render" does around its node. It stands in the pod's ConfigMap.
#
#   pod.sh start COMMAND ..   the cookie, the flags and the groups, and then the node
#   pod.sh up                 whether the node has started (startup probe)
#   pod.sh ready serves|well  whether it serves, and enters groups that it lacks (readiness probe)
#   pod.sh drain              the node leaves its groups, before it is stopped (preStop)
#
# Needs sh, cat, cut, date, grep, head, mkdir, rm, sed, sort, tr, wc, and the erl_call of Erlang.
set -eu

base=${SDERL_OPS_BASE:-/sderl}
config=$base/config run=$base/run
tab=$(printf '\t')

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

find_erl_call() {
    erl_call=$(command -v erl_call) && return
    erl=$(command -v erl) && erl=$(readlink -f "$erl") || erl=''
    for erl_call in "${SDERL_OPS_RELEASE:-.}"/erts-*/bin/erl_call "${erl%/bin/erl}"/erts-*/bin/erl_call; do
        [ ! -x "$erl_call" ] || return 0
    done
    fail "there is no erl_call in this image: it is in erts-*/bin of Erlang, and of releases with include_erts;" \
        "put it on the PATH, or say in which directory the release is"
}

# Evaluates what stands on standard input on the node at an address, and prints what that prints.
call() { # ADDRESS SECONDS
    "$erl_call" -r -timeout "$2" -fetch_stdout -no_result_term -address "$1:$SDERL_OPS_PORT" -e
}

# A command of the file, where it has one.
command_of_file() { # NAME
    [ ! -f "$config/$1" ] || sh "$config/$1"
}

# ---------------------------------------------------------------- groups

# Lines of NAME, a tab and the nodes: those that this node is in.
own_groups() {
    while IFS=$tab read -r name nodes; do
        case ",$nodes," in
        *",'$SDERL_OPS_NODE',"*) printf '%s\t%s\n' "$name" "$nodes" ;;
        esac
    done <"$config/groups"
}

# They as a term of Erlang.
own_groups_term() {
    separator=''
    printf '['
    while IFS=$tab read -r name nodes; do
        printf '%s{%s, [%s]}' "$separator" "$name" "$nodes"
        separator=', '
    done <"$run/groups"
    printf ']'
}

# Asks the others which of these groups run, and whether this node is a member: "NUMBER true|false".
# Nobody answers when all start together.
ask_others() {
    groups=$(own_groups_term)
    count=$(wc -l <"$run/groups")
    deadline=$(($(date +%s) + 20))
    others=$(cut -f 2 "$run/groups" | tr ',' '\n' | tr -d "'" | grep -vxF -e "$SDERL_OPS_NODE" | sort -u) || true
    for other in $others; do
        [ "$(date +%s)" -lt "$deadline" ] || break
        call "${other#*@}" 2 2>/dev/null >>"$run/answers" <<ASK || continue
[case s_group:own_nodes(G) of
     [_ | _] = Ns -> io:format("~b ~p~n", [I, lists:member('$SDERL_OPS_NODE', Ns)]);
     _ -> ok
 end || {I, {G, _}} <- lists:zip(lists:seq(1, $count), $groups)].
ASK
        [ "$(cut -d ' ' -f 1 "$run/answers" | sort -u | wc -l)" -lt "$count" ] || break
    done
}

# A group that this node has left is entered through a member before anything else starts: with the
# list the node would begin by itself, and be put out by the others. In all other cases it has the
# list.
write_groups() {
    number=0 separator=''
    printf '%%%% coding: utf-8\n[{sderl, [{s_groups, ['
    while IFS=$tab read -r name nodes; do
        number=$((number + 1))
        case $(grep "^$number " "$run/answers" | head -n 1) in
        *false) nodes="{seeds, [$nodes]}" ;;
        *) nodes="[$nodes]" ;;
        esac
        printf '%s\n  {%s, normal, %s}' "$separator" "$name" "$nodes"
        separator=,
    done <"$run/groups"
    printf ']}]}].\n'
}

prepare_groups() {
    : >"$run/answers"
    own_groups >"$run/groups"
    if [ -s "$run/groups" ]; then
        ask_others
        write_groups >"$run/groups.config"
    else
        echo '[].' >"$run/groups.config"
    fi
}

# ---------------------------------------------------------------- verbs

start() {
    mask=$(umask)
    umask 077
    mkdir -p "$HOME"
    rm -f "$HOME/.erlang.cookie" "$run/draining" "$run/was_up"
    cat "$base/cookie/cookie" >"$HOME/.erlang.cookie"
    umask 022
    for file in vm.args name.args; do
        sed "s|{{node}}|$SDERL_OPS_NODE|g" "$config/$file" >"$run/$file"
    done
    prepare_groups
    umask "$mask"
    command_of_file before_start
    export ERL_ZFLAGS="${ERL_ZFLAGS-} -config $config/sys -config $run/groups"
    exec "$@"
}

up() {
    said=$(echo '{S, _} = init:get_status(), io:format("~s~n", [S]).' | call "$SDERL_OPS_IP" 8) ||
        fail "the node does not answer yet"
    [ "$said" = started ] || fail "the node is $said"
    command_of_file check
    if [ ! -f "$run/was_up" ]; then
        command_of_file after_start
        : >"$run/was_up"
    fi
}

# What keeps the node from serving, a line each, or "ready". A group that it lacks is entered again.
ready_question() { # serves|well
    cat <<READY
Out = [{G, Ns} || {G, Ns} <- $(own_groups_term),
                  case s_group:own_nodes(G) of [_ | _] -> false; _ -> true end],
lists:foreach(fun({G, Ns}) -> spawn(s_group, enter, [G, Ns]) end, Out),
Info = case code:ensure_loaded(s_group) =/= {module, s_group} orelse s_group:info() of
           List when is_list(List) -> List;
           _ -> []
       end,
Why = fun(#{error := _}) -> "its process does not answer";
         (#{majority := false}) -> "no majority";
         (#{exchanging_epochs_with := [_ | _]}) -> "this node was stopped for a while";
         (#{role := Role}) when Role =:= orphan; Role =:= candidate -> "no coordinator";
         (_) -> none
      end,
Whys = case $1 of
    well -> proplists:get_value(problems, Info, []);
    serves -> [io_lib:format("~0tp: ~s", [map_get(group, G), Why(G)])
               || G <- proplists:get_value(groups, Info, []), Why(G) =/= none]
end,
case [io_lib:format("~0tp: this node is not in it", [G]) || {G, _} <- Out] ++ Whys of
    [] -> io:put_chars("ready\n");
    Some -> lists:foreach(fun(S) -> io:format("~ts~n", [S]) end, Some)
end.
READY
}

# A node of which other members are away serves; without a coordinator or a majority it does not. One
# that has left its groups to be stopped is not to enter them again.
ready() { # serves|well
    [ ! -f "$run/draining" ] || fail "the node is being stopped"
    said=$(ready_question "$1" | call "$SDERL_OPS_IP" 8) || fail "the node does not answer"
    [ "$said" = ready ] || fail "${said:-the node said nothing}"
    command_of_file check
}

drain() {
    : >"$run/draining"
    # The node may be dead, and is stopped in any case.
    call "$SDERL_OPS_IP" 30 <<'LEAVE' || echo "the node did not leave its groups" >&2
case code:ensure_loaded(s_group) =:= {module, s_group} andalso s_group:own_s_groups() of
    Groups when is_list(Groups) -> lists:foreach(fun({G, _}) -> s_group:leave(G) end, Groups);
    _ -> ok
end.
LEAVE
    command_of_file before_stop || echo "before_stop failed" >&2
    command_of_file stop || echo "stop failed" >&2
}

find_erl_call
verb=${1-}
[ $# -eq 0 ] || shift
case $verb in
start | up | ready | drain) "$verb" "$@" ;;
*) fail "usage: pod.sh start COMMAND .. | up | ready serves | ready well | drain" ;;
esac
