%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_shared).
-moduledoc """
The configuration that all monitoring nodes have in common, and which of two holds, option by
option. Pure.

An option that is set gets a stamp: the time, or more where its node knows a higher one. The higher
stamp holds everywhere. So monitoring nodes that tell each other what they know agree in the end,
whoever leads and in whatever order they hear of it. An option that nobody has set has no stamp:
what the leader was started with holds. Stamps are not kept across restarts of all.
""".

-export([new/1, set/4, merge/2, adopt/2, is_ahead/2]).
-export_type([shared/0]).

-type shared() :: sderl_mon_message:shared().

-doc "What a node was started with. `Config` is a whole configuration.".
-spec new(sderl_mon_config:config()) -> shared().
new(Config) -> #{config => sderl_mon_config:shared(Config), stamps => #{}}.

-doc "With options that are set at a node, now.".
-spec set(#{atom() => term()}, node(), sderl_mon_types:t(), shared()) -> shared().
set(Options, Node, Now, #{config := Config, stamps := Stamps}) ->
    Stamp = {lists:max([Now | [Time + 1 || _ := {Time, _} <- Stamps]]), Node},
    #{config => maps:merge(Config, Options),
      stamps => maps:merge(Stamps, #{Key => Stamp || Key := _ <- Options})}.

-doc "The settings of another node, merged over ours.".
-spec merge(shared(), shared()) -> shared().
merge(Theirs, Ours) -> over(fun(Its, Own) -> Its > Own end, Theirs, Ours).

-doc "The same, and what nobody has set is as the other node has it.".
-spec adopt(shared(), shared()) -> shared().
adopt(Theirs, Ours) -> over(fun(Its, Own) -> Its >= Own end, Theirs, Ours).

%% Equal stamps are of one setting, but for those of what nobody has set. Options that a newer
%% version has are kept for those who know them.
over(Holds, #{config := Config, stamps := Its}, #{config := Before, stamps := Own}) ->
    Newer = [Key || Key := _ <- Config, Holds(stamp(Key, Its), stamp(Key, Own))],
    #{config => maps:merge(Before, maps:with(Newer, Config)),
      stamps => maps:merge(Own, maps:with(Newer, Its))}.

-doc "Whether the first knows of a setting that the other has not heard of.".
-spec is_ahead(sderl_mon_message:stamps(), sderl_mon_message:stamps()) -> boolean().
is_ahead(Ours, Theirs) -> [] =/= [Key || Key := Stamp <- Ours, Stamp > stamp(Key, Theirs)].

%% An atom is less than any stamp.
stamp(Key, Stamps) -> maps:get(Key, Stamps, none).
