%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_cluster_worker).
-moduledoc "The part of `bin/sderl bench cluster` that runs on the measured nodes.".

-export([formed/2, sent/1, kind/1]).
-export_type([formed/0]).

-doc """
The usage of a node until its groups were formed: links, the traffic on them, and its work.
""".
-type formed() :: #{
    links := non_neg_integer(),
    messages := non_neg_integer(),
    bytes := non_neg_integer(),
    reductions := non_neg_integer()
}.

-define(LOOK_MS, 200).
%% Within this the links must be those of the plan, or the numbers are taken as they are.
-define(LINKS_MS, 15_000).

-doc """
Waits until each group that the plan has for this node's place is one component that counts all of
its members; then for a while until the node has as many links as the plan says.
""".
-spec formed(sderl_pattern:plan(), Ms :: pos_integer()) ->
    formed() | {error, {not_formed, [term()]}}.
formed(#{groups := Groups}, Ms) ->
    Here = sderl_bench_cluster:name(sderl_bench_cluster:place(node())),
    Own = [{Group, Nodes} || #{name := Group, nodes := Nodes} <- Groups, lists:member(Here, Nodes)],
    Mates = lists:usort(lists:append([Nodes || {_, Nodes} <- Own])) -- [Here],
    maybe
        ok ?= await(fun() ->
            [Group || {Group, Nodes} <- Own, not is_whole(Group, length(Nodes))]
        end, until(Ms)),
        _ = await(fun() -> [links || length(nodes(connected)) =/= length(Mates)] end,
                  until(?LINKS_MS)),
        work()
    else
        Apart -> {error, {not_formed, Apart}}
    end.

is_whole(Group, Count) ->
    case sderl_group:info(sderl_dir:process(Group), ?LINKS_MS) of
        {ok, #{live := Live}} -> length(Live) =:= Count;
        {error, _} -> false
    end.

until(Ms) -> erlang:monotonic_time(millisecond) + Ms.

await(Missing, Until) ->
    case Missing() of
        [] -> ok;
        Last ->
            case erlang:monotonic_time(millisecond) >= Until of
                true -> Last;
                false ->
                    receive
                    after ?LOOK_MS -> await(Missing, Until)
                    end
            end
    end.

work() ->
    #{sent := Sent} = sderl_bench_meter:snapshot(),
    {Reductions, _} = erlang:statistics(reductions),
    #{
        links => length(nodes(connected)),
        messages => lists:sum([Messages || {_, _, Messages, _} <- maps:values(Sent)]),
        bytes => lists:sum([Bytes || {_, Bytes, _, _} <- maps:values(Sent)]),
        reductions => Reductions
    }.

-doc """
Messages that processes of this node send to other nodes within so many milliseconds, by `kind/1`,
with the bytes of the terms.
""".
-spec sent(Ms :: pos_integer()) -> #{atom() => {Messages :: pos_integer(), Bytes :: pos_integer()}}.
sent(Ms) ->
    Session = trace:session_create(?MODULE, self(), []),
    try
        _ = trace:process(Session, all, true, [send]),
        _ = trace:send(Session, [
            {[{'_', '_'}, '_'], [], []},
            {['$1', '_'], [{is_pid, '$1'}, {'=/=', {node, '$1'}, {node}}], []}
        ], []),
        count(erlang:start_timer(Ms, self(), over), #{})
    after
        true = trace:session_destroy(Session)
    end.

count(Timer, Sent) ->
    receive
        {timeout, Timer, over} -> Sent;
        {trace, _, send, Message, _} ->
            Kind = kind(Message),
            {Messages, Bytes} = maps:get(Kind, Sent, {0, 0}),
            count(Timer, Sent#{Kind => {Messages + 1, Bytes + erlang:external_size(Message)}})
    end.

-doc "The purpose of a message of the library.".
-spec kind(term()) -> heartbeats | groups | routes | attributes | distances | other.
kind({sderl_heart, _, _, _}) -> heartbeats;
kind({sderl, _, _, _, Message}) when element(1, Message) =:= hb; element(1, Message) =:= hb_ack ->
    heartbeats;
kind({sderl, _, _, _, _}) -> groups;
kind({sderl_route, _, _, _}) -> routes;
kind(Message) when is_tuple(Message), element(1, Message) =:= sderl_attr -> attributes;
kind(Message) when is_tuple(Message), element(1, Message) =:= sderl_dist -> distances;
kind(_) -> other.
