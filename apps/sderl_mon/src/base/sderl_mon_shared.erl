%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_shared).
-moduledoc """
The configuration that all monitoring nodes have in common, and which of two wins, option by option.
Pure.

An option that is set gets a stamp: the time, or more if its node knows a higher stamp. The higher
stamp wins everywhere. So monitoring nodes that exchange their settings agree in the end, whichever
leads and in whatever order settings arrive. An option that nobody has set has no stamp: the
leader's start configuration wins. Stamps are lost when all monitoring nodes have stopped.
""".

-export([new/1, set/4, merge/2, adopt/2, is_ahead/2]).
-export_type([shared/0]).

-type shared() :: sderl_mon_message:shared().

-doc "The settings of a node that has just started. `Config` is a whole configuration.".
-spec new(sderl_mon_config:config()) -> shared().
new(Config) -> #{config => sderl_mon_config:shared(Config), stamps => #{}}.

-doc "Adds options that are set at a node now.".
-spec set(#{atom() => term()}, node(), sderl_mon_types:t(), shared()) -> shared().
set(Options, Node, Now, #{config := Config, stamps := Stamps}) ->
    Stamp = {lists:max([Now | [Time + 1 || _ := {Time, _} <- Stamps]]), Node},
    #{config => maps:merge(Config, Options),
      stamps => maps:merge(Stamps, #{Key => Stamp || Key := _ <- Options})}.

-doc "The settings of another node, merged over ours.".
-spec merge(shared(), shared()) -> shared().
merge(Theirs, Ours) -> over(fun(Its, Own) -> Its > Own end, Theirs, Ours).

-doc "The same, but options that nobody has set are taken from the other node.".
-spec adopt(shared(), shared()) -> shared().
adopt(Theirs, Ours) -> over(fun(Its, Own) -> Its >= Own end, Theirs, Ours).

%% Equal stamps mean the same setting, unless nobody has set the option. Options of a newer version
%% are kept for the nodes that know them.
over(Holds, #{config := Config, stamps := Its}, #{config := Before, stamps := Own}) ->
    Newer = [Key || Key := _ <- Config, Holds(stamp(Key, Its), stamp(Key, Own))],
    #{config => maps:merge(Before, maps:with(Newer, Config)),
      stamps => maps:merge(Own, maps:with(Newer, Its))}.

-doc "Whether the first has a setting that the other lacks.".
-spec is_ahead(sderl_mon_message:stamps(), sderl_mon_message:stamps()) -> boolean().
is_ahead(Ours, Theirs) -> [] =/= [Key || Key := Stamp <- Ours, Stamp > stamp(Key, Theirs)].

%% An atom is less than any stamp.
stamp(Key, Stamps) -> maps:get(Key, Stamps, none).
