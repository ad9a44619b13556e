%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plugin_cowboy).
-moduledoc """
Connections of Cowboy's listeners, as Ranch counts them. Ranch does not count requests: a connection
may have many.
""".

-behaviour(sderl_plugin).

-export([about/0, start/0, read/1]).

-doc false.
-spec about() -> sderl_plugin:about().
about() ->
    #{application => cowboy, versions => [<<"2.">>], numbers => [
        number(<<"cowboy_connections">>, gauge, <<"connections">>, sum,
               <<"connections that are open now, of all listeners">>),
        number(<<"cowboy_accepted">>, counter, <<"connections">>, sum,
               <<"connections that were accepted">>),
        number(<<"cowboy_full">>, gauge, <<"listeners">>, sum,
               <<"listeners that have as many connections as they may have">>)
    ]}.

number(Name, Kind, Unit, Total, About) ->
    #{name => Name, kind => Kind, unit => Unit, total => Total, about => About, for => [op]}.

-doc false.
-spec start() -> {ok, #{}}.
start() -> {ok, #{}}.

%% A listener's counter ends with the listener: only growth is added, so that the sum never falls.
-doc false.
-spec read(#{term() => non_neg_integer()}) -> {[integer()], #{term() => non_neg_integer()}}.
read(Before) ->
    Listeners = maps:from_list([{Ref, Info} || {Ref, Info} <- maps:to_list(ranch:info())]),
    Open = lists:sum([maps:get(active_connections, Info, 0) || _ := Info <- Listeners]),
    Accepted = #{Ref => accepted(Info) || Ref := Info <- Listeners},
    Grown = lists:sum([max(0, Now - maps:get(Ref, Before, 0)) || Ref := Now <- Accepted]),
    Total = maps:get(total, Before, 0) + Grown,
    Full = length([full || _ := #{active_connections := Has, max_connections := Most} <- Listeners,
                           is_integer(Most), Has >= Most]),
    {[Open, Total, Full], Accepted#{total => Total}}.

accepted(#{metrics := Metrics}) ->
    lists:sum([N || {conns_sup, _, accept} := N <- Metrics]);
accepted(_) -> 0.
