%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_share).
-moduledoc false.
%% The attributes that a node sends its mates, and how a mate applies them. Pure.
%%
%% Each change of a value, or of the reason why there is none, steps the node's version, and the
%% attribute keeps the version of its last change. A mate that has everything up to a version is
%% sent what changed since, and of the other attributes only their present ages. A mate gets all
%% attributes if one was removed since its version, if it shares other groups than before (it may
%% see other attributes: `visible/2`), if its link went, and if it asks. A mate that missed
%% something because its server died finds out by the version at which a frame begins, or by the
%% *life*, which names one life of the sender's server and the shared groups.
%%
%% | body of a frame | says |
%% |---|---|
%% | `{full, Life, To, [Entry]}` | all attributes that this mate may see |
%% | `{delta, Life, From, To, [Entry], [{Name, AgeMs}]}` | those that changed; those that were
%% computed again and are the same; static ones that are not named are unchanged |
%% | `again` | asks for `full` |
%%
%% An entry is `{Name, Value, ok | Reason, AgeMs, static | KeepMs, Version}`: a static value is
%% valid until it is set anew, a computed one is kept for `KeepMs` after its computation began.
%%
%% A body has a stamp, `{Sent, Echo, Held}`: the sender's clock, the clock in the last frame that it
%% has from the receiver, and how long ago that came. A frame that was held in a full link, or in
%% the mailbox of a stopped node, would look younger than it is; by `delay/2` the receiver knows how
%% long it was under way at most, by its own clock alone.

-export([new/1, step/1, removed/1, forget/2, told/2, frames/5]).
-export([is_body/1, decide/2, delay/2, aged/2, visible/2, group/1]).
-export_type([state/0, body/0, seen/0, verdict/0]).

-type version() :: non_neg_integer().
-type body() ::
    {full, Life :: term(), version(), [sderl_attr_table:entry()]}
    | {delta, Life :: term(), From :: version(), To :: version(), [sderl_attr_table:entry()],
       [{sderl_attr:name(), AgeMs :: non_neg_integer()}]}
    | again.

%% What each mate was sent: up to which version, for which groups, and when.
-opaque state() :: #{life := term(), version := version(), all_since := version(),
                     told := #{node() => {version(), [Group :: term()], At :: integer()}}}.

-doc """
The state received from a mate: the sender's run, the version, the names of static attributes.
""".
-type seen() :: none | {Life :: term(), version(), Static :: #{sderl_attr:name() => []}}.

-doc """
The reaction to a frame: replace all values of that node, change and confirm some, or ask for all.
""".
-type verdict() :: {replace, [sderl_attr_table:entry()], seen()}
                 | {change, [sderl_attr_table:entry()], Static :: [sderl_attr:name()],
                    [{sderl_attr:name(), AgeMs :: non_neg_integer()}], seen()}
                 | ask.

-spec new(Life :: term()) -> state().
new(Life) -> #{life => Life, version => 0, all_since => 0, told => #{}}.

-doc "A value changed: the version of that change.".
-spec step(state()) -> {version(), state()}.
step(#{version := V} = S) -> {V + 1, S#{version := V + 1}}.

-doc "An attribute was removed.".
-spec removed(state()) -> state().
removed(S0) ->
    {V, S} = step(S0),
    S#{all_since := V}.

-doc "A mate is sent all the next time.".
-spec forget(node(), state()) -> state().
forget(Node, #{told := Told} = S) -> S#{told := maps:remove(Node, Told)}.

-doc "Whether anything was sent to that mate.".
-spec told(node(), state()) -> boolean().
told(Node, #{told := Told}) -> is_map_key(Node, Told).

-doc """
The messages to send at `Now`, with their receivers: to all mates, or only to those for which there
is news. `Mates`: the groups that are shared with each. The entries are all that this node has, with
the moment of each in place of its age (`now`: it is so at this moment). Nodes that are no mates are
forgotten.
""".
-spec frames(all | news, #{node() => [Group :: term()]}, [Entry], Now :: integer(), state()) ->
    {[{[node()], body()}], state()} when
    Entry :: sderl_attr_table:moment().
frames(Which, Mates, Entries, Now, #{life := Life, version := To, told := Told} = S) ->
    Receivers = #{Node => lists:sort(Groups)
                  || Node := Groups <- Mates, Which =:= all orelse is_news(Node, Groups, S)},
    %% Most mates get the same, which is made once.
    Alike = maps:groups_from_list(fun({Node, Groups}) -> {Groups, since(Node, Groups, S)} end,
                                  fun({Node, _}) -> Node end, maps:to_list(Receivers)),
    Frames = [{lists:sort(Nodes), body(Since, [E || E <- Entries, visible(element(1, E), Groups)],
                                       Now, S#{life := {Life, erlang:phash2(Groups)}})}
              || {{Groups, Since}, Nodes} <- lists:sort(maps:to_list(Alike))],
    {Frames,
     S#{told := maps:merge(maps:with(maps:keys(Mates), Told),
                           #{Node => {To, Groups, Now} || Node := Groups <- Receivers})}}.

is_news(Node, Groups, #{version := To} = S) ->
    case since(Node, Groups, S) of
        {To, _} -> false;
        _ -> true
    end.

since(Node, Groups, #{told := Told, all_since := All}) ->
    Sorted = lists:sort(Groups),
    case Told of
        #{Node := {V, Sorted, At}} when V >= All -> {V, At};
        _ -> nothing
    end.

body(nothing, Entries, Now, #{life := Life, version := To}) ->
    {full, Life, To, [aged(E, Now) || E <- Entries]};
body({From, At}, Entries, Now, #{life := Life, version := To}) ->
    {Changed, Same} = lists:partition(fun(E) -> element(6, E) > From end, Entries),
    {delta, Life, From, To, [aged(E, Now) || E <- Changed],
     [{Name, Now - Then} || {Name, _, _, Then, Keep, _} <- Same, is_integer(Keep), Then >= At]}.

-doc "An entry with its age in place of its moment.".
-spec aged(sderl_attr_table:moment(), Now :: integer()) -> sderl_attr_table:entry().
aged({Name, Value, Why, now, Kind, V}, _) -> {Name, Value, Why, 0, Kind, V};
aged({Name, Value, Why, Then, Kind, V}, Now) -> {Name, Value, Why, max(0, Now - Then), Kind, V}.

-doc "Whether a term that another node sent is a body.".
-spec is_body(term()) -> boolean().
is_body({full, _Life, To, Entries}) -> is_integer(To) andalso sderl_attr_table:are_entries(Entries);
is_body({delta, _Life, From, To, Entries, Aged})
  when is_integer(From), is_integer(To), length(Aged) >= 0 ->
    sderl_attr_table:are_entries(Entries)
        andalso lists:all(fun({_Name, Age}) -> is_integer(Age) andalso Age >= 0;
                             (_) -> false
                          end, Aged);
is_body(again) -> true;
is_body(_) -> false.

-doc """
The reaction to a body, given the state received from that node before. (`again` is handled
elsewhere.)
""".
-spec decide(body(), seen()) -> verdict().
decide({full, Life, To, Entries}, _) ->
    {replace, Entries, {Life, To, static(Entries, #{})}};
decide({delta, Life, From, To, Entries, Aged}, {Life, Has, Static}) when From =< Has, To >= Has ->
    %% `Has` counts frames only, not values that came with answers, so no entry is known already,
    %% except in a frame that was sent twice.
    {change, Entries, maps:keys(maps:without([element(1, E) || E <- Entries], Static)), Aged,
     {Life, To, static(Entries, Static)}};
decide({delta, _, _, _, _, _}, _) -> ask.

static(Entries, Before) ->
    lists:foldl(fun({Name, _, _, _, static, _}, S) -> S#{Name => []};
                   ({Name, _, _, _, _, _}, S) -> maps:remove(Name, S)
                end, Before, Entries).

-doc "How long a frame with this stamp was under way at most, in milliseconds.".
-spec delay({Sent :: integer(), Echo :: none | integer(), Held :: non_neg_integer()},
            Now :: integer()) ->
    non_neg_integer().
delay({_, none, _}, _) -> 0;
delay({_, Echo, Held}, Now) when is_integer(Echo), is_integer(Held), is_integer(Now) ->
    max(0, Now - Echo - Held).

-doc "Whether a node that shares these groups may see an attribute.".
-spec visible(sderl_attr:name(), [Group :: term()]) -> boolean().
visible(Name, Groups) ->
    case group(Name) of
        all -> true;
        {group, Group} -> lists:any(fun(G) -> G =:= Group end, Groups)
    end.

-doc "The groups in which an attribute is shared: all, or a single one.".
-spec group(sderl_attr:name()) -> all | {group, term()}.
group({in, Group, _}) -> {group, Group};
group(_) -> all.
