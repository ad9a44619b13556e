%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_synthetic_names).
-moduledoc """
The names of a cluster that does not exist: as many as the topology says for a group. Pure.
""".

-export([names/3]).

-doc "Names of a group with a prefix, sorted. Errors: `not_found`: there is no such group.".
-spec names(sderl_mon_types:id(), binary(), sderl_mon_types:topology()) ->
    {ok, [sderl_mon_types:name()]} | {error, not_found}.
names(Group, Prefix, #{t := T, groups := Groups}) ->
    case Groups of
        #{Group := #{names := N, live := [_ | _] = Live}} ->
            Nodes = list_to_tuple(Live),
            {ok, [Name
                  || I <- lists:seq(1, N), #{name := Text} = Name <- [name(I, Nodes, T)],
                     starts(Text, Prefix)]};
        #{Group := _} ->
            {ok, []};
        #{} ->
            {error, not_found}
    end.

starts(Text, Prefix) -> binary:longest_common_prefix([Text, Prefix]) =:= byte_size(Prefix).

name(I, Nodes, T) ->
    Kind = element(1 + I rem 4, {"user", "room", "worker", "cache"}),
    #{
        name => iolist_to_binary(io_lib:format("{~s,~4..0b}", [Kind, I])),
        pid => iolist_to_binary(io_lib:format("<0.~b.0>", [200 + I])),
        node => element(1 + erlang:phash2(I, tuple_size(Nodes)), Nodes),
        since => T - 1000 * (60 + erlang:phash2({since, I}, 40_000))
    }.
