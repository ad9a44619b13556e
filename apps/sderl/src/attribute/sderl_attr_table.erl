%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_table).
-moduledoc false.
%% The values that this node has, its own and others', in tables that the supervisor owns. A reader
%% does one lookup in its own process, and the server may die.
%%
%% | table | row | |
%% |---|---|---|
%% | `sderl_attrs` | `{{Name, Node}, Value, Why, At, Kind, Version}` | `Why` is `ok`, or the reason why there is no value |
%% | `sderl_attr_state` | `{{own, Name}, Spec, Source, Once}` | the attributes of this node; `Once`:
%% the outcome of an automatic one |
%% | | `{{peer, Node}, Heard}` | a mate that sends us all its attributes, and when it did last |
%% | | `{{other, Node}}` | another node of which answers to questions are kept |
%% | | `{{silent, Node}, Until}` | a node that did not answer in time and is not asked again before
%% that; `{gateway, Node}`: not about other nodes |
%% | | `{sample, Sample}` | the schedulers' counters at the last look (`sderl_attr_builtin`) |
%% | | `{{version, Name}, Version}` | of an attribute that prepared choices use: another one as soon
%% as a value changes |
%%
%% `At` is a moment, in this VM's monotonic milliseconds, at which the value was true, or after
%% which it was taken: an age that is read here may be too great by the time that a message took,
%% but not too small. It is `now` for what this node itself has set.
%%
%% Only the server writes: this node's values, values that mates send, and answers to questions. By
%% the version, which is the owner's, an answer that was overtaken does no harm (`keep/6`). Rows of
%% nodes that are no mates are deleted by age.

-export([new/0, cached/2, cached/3, fresh/4, fresh/5, sample/0, sample/1]).
-export([own/0, own/1, define/4, undefine/1, put_own/6]).
-export([told/3, told_again/4, heard/2, silent/2, is_silent/2, spoke/1, keep/6]).
-export([forget/1, drop/2, forget_older/1, names/1, peers/0]).
-export([version/1, new_version/1, new_versions/0, limit/3]).
-export([are_entries/1]).
-export_type([kind/0]).

-import(sderl_clock, [now_ms/0]).

-doc "Static, or computed and kept for so many milliseconds.".
-type kind() :: static | KeepMs :: non_neg_integer().
-type why() :: ok | Reason :: term().
-type entry() :: {sderl_attr:name(), Value :: term(), why(), AgeMs :: non_neg_integer(), kind(),
                  Version :: non_neg_integer()}.
%% The same with the moment of the value (`now`: it is so at this moment) in place of its age.
-type moment() :: {sderl_attr:name(), Value :: term(), why(), now | integer(), kind(),
                   Version :: non_neg_integer()}.
-export_type([why/0, entry/0, moment/0]).

-define(ROWS, sderl_attrs).
-define(STATE, sderl_attr_state).

-doc "Whether a term that another node sent is a list of entries.".
-spec are_entries(term()) -> boolean().
are_entries(Entries) when length(Entries) >= 0 ->
    lists:all(fun({_Name, _Value, _Why, Age, Kind, Version}) ->
                     is_count(Age) andalso (Kind =:= static orelse is_count(Kind))
                         andalso is_count(Version);
                 (_) -> false
              end, Entries);
are_entries(_) -> false.

is_count(Number) -> is_integer(Number) andalso Number >= 0.

-doc "Makes the tables; the calling process, the supervisor, owns them.".
-spec new() -> ok.
new() ->
    ?ROWS = ets:new(?ROWS, [named_table, public, {read_concurrency, true}]),
    ?STATE = ets:new(?STATE, [named_table, public, {read_concurrency, true}]),
    ok.

-doc "The known value of a node's attribute, however old.".
-spec cached(node(), sderl_attr:name()) -> sderl_attr:answer() | unknown.
cached(Node, Name) -> cached(Node, Name, now_ms()).

-doc "The same for a caller that reads many and looks at the clock once.".
-spec cached(node(), sderl_attr:name(), Now :: integer()) -> sderl_attr:answer() | unknown.
cached(Node, Name, Now) ->
    case ets:lookup(?ROWS, {Name, Node}) of
        [{_, Value, ok, At, _, _}] -> {ok, Value, age(At, Now)};
        [{_, _, Why, At, _, _}] -> {undefined, Why, age(At, Now)};
        [] -> absent(Node, Now)
    end.

-doc """
The same as an entry. A row counts as fresh up to `MaxAge`, or for as long as its owner keeps it if
that is longer, because to ask again would bring the same.
""".
-spec fresh(node(), sderl_attr:name(), Now :: integer(), MaxAge :: non_neg_integer()) ->
    {fresh | stale, entry()} | unknown.
fresh(Node, Name, Now, MaxAge) -> fresh(Node, Name, Now, MaxAge, 0).

-doc "The same for a caller that takes values a little longer than their owner keeps them.".
-spec fresh(node(), sderl_attr:name(), Now :: integer(), MaxAge :: non_neg_integer(),
            Slack :: non_neg_integer()) ->
    {fresh | stale, entry()} | unknown.
fresh(Node, Name, Now, MaxAge, Slack) ->
    case ets:lookup(?ROWS, {Name, Node}) of
        %% The first value is worth waiting for.
        [{_, Value, pending, At, Kind, Version}] ->
            {stale, {Name, Value, pending, age(At, Now), Kind, Version}};
        [{_, Value, Why, At, Kind, Version}] ->
            Age = age(At, Now),
            {fresh_if(Age =< limit(Kind, MaxAge, Slack)), {Name, Value, Why, Age, Kind, Version}};
        [] ->
            case absent(Node, Now) of
                unknown -> unknown;
                {undefined, not_set, Age} ->
                    {fresh_if(Age =< MaxAge), {Name, undefined, not_set, Age, static, 0}}
            end
    end.

-doc "How old a fresh value may be.".
-spec limit(kind(), MaxAge :: non_neg_integer(), Slack :: non_neg_integer()) -> non_neg_integer().
limit(static, MaxAge, _) -> MaxAge;
limit(Keep, MaxAge, Slack) -> max(MaxAge, Keep + Slack).

-doc "The version of an attribute's values, of all nodes; `none` before `new_version/1`.".
-spec version(sderl_attr:name()) -> reference() | none.
version(Name) -> ets:lookup_element(?STATE, {version, Name}, 2, none).

-doc "The same, made if there is none: a value that changes after this call changes the version.".
-spec new_version(sderl_attr:name()) -> reference().
new_version(Name) ->
    _ = ets:insert_new(?STATE, {{version, Name}, make_ref()}),
    case version(Name) of
        none -> new_version(Name);
        Version -> Version
    end.

%% Values of these were written.
changed(Names) ->
    lists:foreach(fun(Name) ->
        ets:member(?STATE, {version, Name})
            andalso ets:insert(?STATE, {{version, Name}, make_ref()})
    end, Names).

-doc "All values count as changed. Drops the versions, also of names that are not used any more.".
-spec new_versions() -> ok.
new_versions() ->
    true = ets:match_delete(?STATE, {{version, '_'}, '_'}),
    ok.

fresh_if(true) -> fresh;
fresh_if(false) -> stale.

%% A node that sends all its attributes, and has not sent this one.
absent(Node, _) when Node =:= node() -> {undefined, not_set, 0};
absent(Node, Now) ->
    case ets:lookup(?STATE, {peer, Node}) of
        [{_, Heard}] -> {undefined, not_set, age(Heard, Now)};
        [] -> unknown
    end.

age(now, _) -> 0;
age(At, Now) -> max(0, Now - At).

-spec sample() -> undefined | term().
sample() -> ets:lookup_element(?STATE, sample, 2, undefined).
-spec sample(term()) -> ok.
sample(Sample) ->
    true = ets:insert(?STATE, {sample, Sample}),
    ok.

%% ---------------------------------------------------------------- this node's own

-doc """
This node's attributes: name, spec, source, and the value of an automatic one.
""".
-spec own() ->
    [{sderl_attr:name(), sderl_attr:spec(), sderl_attr:source(), none | sderl_attr_eval:outcome()}].
own() ->
    [{Name, Spec, Source, Once}
     || [Name, Spec, Source, Once] <- ets:match(?STATE, {{own, '$1'}, '$2', '$3', '$4'})].

-spec own(sderl_attr:name()) -> undefined | {sderl_attr:spec(), sderl_attr:source()}.
own(Name) ->
    case ets:lookup(?STATE, {own, Name}) of
        [{_, Spec, Source, _}] -> {Spec, Source};
        [] -> undefined
    end.

-spec define(sderl_attr:name(), sderl_attr:spec(), sderl_attr:source(),
             none | sderl_attr_eval:outcome()) -> ok.
define(Name, Spec, Source, Once) ->
    true = ets:insert(?STATE, {{own, Name}, Spec, Source, Once}),
    ok.

-spec undefine(sderl_attr:name()) -> ok.
undefine(Name) ->
    true = ets:delete(?STATE, {own, Name}),
    true = ets:delete(?ROWS, {Name, node()}),
    changed([Name]).

-spec put_own(sderl_attr:name(), term(), why(), now | integer(), kind(), non_neg_integer()) -> ok.
put_own(Name, Value, Why, At, Kind, Version) ->
    true = ets:insert(?ROWS, {{Name, node()}, Value, Why, At, Kind, Version}),
    changed([Name]).

%% ---------------------------------------------------------------- others'

-doc "A mate sent these; `At` is when it did, at the latest.".
-spec told(node(), [entry()], At :: integer()) -> ok.
told(Node, Entries, At) ->
    true = ets:insert(?ROWS, [{{Name, Node}, Value, Why, At - Age, Kind, Version}
                              || {Name, Value, Why, Age, Kind, Version} <- Entries]),
    changed([element(1, Entry) || Entry <- Entries]).

-doc "A mate confirmed these, with the ages of the computed ones.".
-spec told_again(node(), Static, Aged, At :: integer()) -> ok when
    Static :: [sderl_attr:name()], Aged :: [{sderl_attr:name(), AgeMs :: non_neg_integer()}].
told_again(Node, Static, Aged, At) ->
    lists:foreach(fun(Name) -> ets:update_element(?ROWS, {Name, Node}, {4, At}) end, Static),
    lists:foreach(fun({Name, Age}) -> ets:update_element(?ROWS, {Name, Node}, {4, At - Age}) end,
                  Aged).

-spec heard(node(), At :: integer()) -> ok.
heard(Node, At) ->
    true = ets:insert(?STATE, {{peer, Node}, At}),
    spoke(Node).

-doc "The node did not answer: callers do not wait for it again before `Until`.".
-spec silent(node() | {gateway, node()}, Until :: integer()) -> ok.
silent(Node, Until) ->
    true = ets:insert(?STATE, {{silent, Node}, Until}),
    ok.

-doc "Whether the node did not answer lately, and has sent nothing since.".
-spec is_silent(node() | {gateway, node()}, Now :: integer()) -> boolean().
is_silent(Node, Now) ->
    case ets:lookup(?STATE, {silent, Node}) of
        [{_, Until}] -> Now < Until;
        [] -> false
    end.

-doc "The node has sent something.".
-spec spoke(node()) -> ok.
spoke(Node) ->
    true = ets:delete(?STATE, {silent, Node}),
    ok.

-doc """
Keeps an answer to a question that was sent at `At`, unless the table has a newer one: of a mate one
with a higher version, of another node a younger value.
""".
-spec keep(node(), sderl_attr:name(), term(), why(), {At :: integer(), kind()},
           Version :: non_neg_integer()) -> ok.
keep(Node, Name, Value, Why, {At, Kind}, Version) ->
    Newer = case {ets:lookup(?ROWS, {Name, Node}), ets:member(?STATE, {peer, Node})} of
        %% A mate sends by itself what it has, and what it does not have any more.
        {[], Mate} -> not Mate;
        {[{_, _, _, Before, _, V}], true} -> Version > V orelse Version =:= V andalso At > Before;
        {[{_, _, _, Before, _, _}], false} -> At > Before
    end,
    true = not Newer orelse ets:insert(?ROWS, {{Name, Node}, Value, Why, At, Kind, Version}),
    true = ets:insert(?STATE, {{other, Node}}),
    changed([Name || Newer]).

-doc "Deletes all values of a node that is down, or shares no group any more.".
-spec forget(node()) -> ok.
forget(Node) ->
    true = ets:delete(?STATE, {peer, Node}),
    ok = spoke(Node),
    true = ets:match_delete(?ROWS, {{'_', Node}, '_', '_', '_', '_', '_'}),
    new_versions().

-doc "Deletes attributes that the node does not have any more.".
-spec drop(node(), [sderl_attr:name()]) -> ok.
drop(Node, Names) ->
    lists:foreach(fun(Name) -> ets:delete(?ROWS, {Name, Node}) end, Names),
    changed(Names).

-doc "Deletes values of nodes that are no mates, if they are older than a moment.".
-spec forget_older(integer()) -> ok.
forget_older(Moment) ->
    _ = ets:select_delete(?STATE, [{{{silent, '_'}, '$1'}, [{'<', '$1', Moment}], [true]}]),
    lists:foreach(fun([Node]) ->
        Gone = case ets:member(?STATE, {peer, Node}) of
            true -> true;
            false ->
                _ = ets:select_delete(?ROWS, [{{{'_', Node}, '_', '_', '$1', '_', '_'},
                                               [{'<', '$1', Moment}], [true]}]),
                names(Node) =:= []
        end,
        true = not Gone orelse ets:delete(?STATE, {other, Node})
    end, ets:match(?STATE, {{other, '$1'}})),
    new_versions().

-spec names(node()) -> [sderl_attr:name()].
names(Node) -> [Name || [Name] <- ets:match(?ROWS, {{'$1', Node}, '_', '_', '_', '_', '_'})].

-doc "The mates that have sent us values.".
-spec peers() -> [node()].
peers() -> [Node || [Node] <- ets:match(?STATE, {{peer, '$1'}, '_'})].
