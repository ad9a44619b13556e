%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_front).
-moduledoc """
A front page: charts that a person has put together under a name. Checked here, whether it comes
from a browser or out of the file. Pure.
""".

-export([check/1, place/1, windows/0, metric_bytes/0]).
-export_type([front/0, chart/0, place/0]).

-doc """
`rev` is how often the page was saved: who saves says on which one the changes were made, so that
nobody's are lost.
""".
-type front() :: #{
    name := binary(), window := binary(), charts := [chart()], rev := non_neg_integer()
}.

-doc "One number of the nodes of a place. (Its metric may be gone meanwhile; the page says so.)".
-type chart() :: #{metric := binary(), place := place()}.

-doc "As in `t:sderl_mon_types:place/0`, in the words of the protocol.".
-type place() :: #{kind := binary(), name => binary()}.

-define(WINDOWS, [~"15m", ~"hour", ~"day", ~"week", ~"month"]).
-define(KINDS, [~"cluster", ~"family", ~"group", ~"node"]).
-define(NAME, 60).
-define(CHARTS, 24).
-define(PLACE, 255).
-define(METRIC, 640).
-define(REV, 1_000_000_000).

-doc "How much time a page may show.".
-spec windows() -> [binary()].
windows() -> ?WINDOWS.

-doc "The longest name of a metric, with the tags of one series.".
-spec metric_bytes() -> pos_integer().
metric_bytes() -> ?METRIC.

-doc "A page out of JSON, or what is wrong with it.".
-spec check(term()) -> {ok, front()} | {error, unicode:chardata()}.
check(#{~"name" := Name, ~"window" := Window, ~"charts" := Charts} = Given)
  when map_size(Given) =:= 3; map_size(Given) =:= 4, is_map_key(~"rev", Given) ->
    maybe
        ok ?= name(Name),
        true ?= lists:member(Window, ?WINDOWS)
            orelse {error, ["window is one of ", lists:join(", ", ?WINDOWS)]},
        {ok, Rev} ?= rev(maps:get(~"rev", Given, 0)),
        {ok, Checked} ?= charts(Charts),
        {ok, #{name => Name, window => Window, charts => Checked, rev => Rev}}
    end;
check(_) ->
    {error, "name, window, charts and rev are its fields, and all but rev are needed"}.

name(Name) ->
    case text(Name, ?NAME) andalso string:trim(Name) =:= Name
         andalso re:run(Name, "[\\x00-\\x1f\\x7f]", [{capture, none}]) =:= nomatch of
        true -> ok;
        false -> {error, "name is a text of 1 to 60 bytes, without blanks at its ends"}
    end.

text(Text, Most) ->
    is_binary(Text) andalso Text =/= ~"" andalso byte_size(Text) =< Most
        andalso is_binary(unicode:characters_to_binary(Text)).

rev(Rev) when is_integer(Rev), Rev >= 0, Rev =< ?REV -> {ok, Rev};
rev(_) -> {error, "rev is the whole number that the page had when it was read, 0 for a new one"}.

charts(Charts) when is_list(Charts) -> charts(Charts, 0, []);
charts(_) -> few().

few() -> {error, "charts is a list of at most 24 objects with metric and place"}.

charts([], _, Done) -> {ok, lists:reverse(Done)};
charts([Chart | Rest], N, Done) when N < ?CHARTS ->
    case chart(Chart) of
        {ok, Checked} -> charts(Rest, N + 1, [Checked | Done]);
        {error, Why} -> {error, ["charts.", integer_to_list(N + 1), $., Why]}
    end;
charts(_, _, _) -> few().

chart(#{~"metric" := Metric, ~"place" := Place} = Given) when map_size(Given) =:= 2 ->
    case {text(Metric, ?METRIC), place(Place)} of
        {false, _} -> {error, "metric is the name of a metric"};
        {true, {ok, Checked}} -> {ok, #{metric => Metric, place => Checked}};
        {true, {error, Why}} -> {error, ["place.", Why]}
    end;
chart(_) ->
    {error, "metric and place are its fields"}.

-doc "A place out of JSON.".
-spec place(term()) -> {ok, place()} | {error, unicode:chardata()}.
place(#{~"kind" := ~"cluster"} = Given) when map_size(Given) =:= 1 -> {ok, #{kind => ~"cluster"}};
place(#{~"kind" := Kind, ~"name" := Name} = Given) when map_size(Given) =:= 2,
                                                       Kind =/= ~"cluster" ->
    case lists:member(Kind, ?KINDS) andalso text(Name, ?PLACE) of
        true -> {ok, #{kind => Kind, name => Name}};
        false -> wrong_place()
    end;
place(_) -> wrong_place().

wrong_place() ->
    {error, "kind is one of cluster, family, group and node; all but cluster have a name, too"}.
