%% SPDX-License-Identifier: Apache-2.0
-module(sderl_names).
-moduledoc false.
%% The names that this node has, as everyone reads them: any process, at any time. `sderl_store`
%% writes them.

-include("sderl_rows.hrl").

-export([is_member/1, whereis/2, pid/2, registration/2, registrations/1, held_at/2]).
-export([names/0, names/1, names/2, more_names/1]).
-export([matching/2, size/0, words/0, count/1, count_at/1, forget/1]).

-define(GROUPS, sderl_groups).

-doc "Whether this node is a member of the group.".
-spec is_member(term()) -> boolean().
is_member(G) -> ets:member(?GROUPS, G).

-doc "The process of a name. A process of this node that is dead does not count (rule 17).".
-spec whereis(term(), term()) -> pid() | undefined.
whereis(Group, Name) ->
    case pid(Group, Name) of
        none -> undefined;
        Pid when node(Pid) =:= node() ->
            case is_process_alive(Pid) of
                true -> Pid;
                false -> undefined
            end;
        Found -> Found
    end.

-doc "The process of a name, alive or not.".
-spec pid(term(), term()) -> pid() | none.
pid(Group, Name) ->
    case is_visible(Group) of
        true -> ets:lookup_element(?NAMES, {Group, Name}, ?STORED_PID, none);
        false -> none
    end.

%% The names of an island that this node is leaving may still be in the table.
is_visible(undefined) -> is_member(undefined);
is_visible(_) -> true.

-doc "All that is known of a name.".
-spec registration(term(), term()) ->
    none
    | #{pid := pid(),
        home := node(),
        token := {term(), non_neg_integer()},
        options := [] | map()}.
registration(Group, Name) ->
    case is_visible(Group) andalso ets:lookup(?NAMES, {Group, Name}) of
        false -> none;
        [?STORED(_, _, Pid, Home, Epoch, Seq, Options)] ->
            #{pid => Pid, home => Home, token => {Epoch, Seq}, options => Options};
        [] -> none
    end.

-doc "All names of a group with what they were registered with.".
-spec registrations(term()) -> [{Name :: term(), pid(), [] | map()}].
registrations(Group) ->
    sderl_rows:fold(Group, fun(?STORED(_, Name, Pid, _, _, _, Options), Acc) ->
        [{Name, Pid, Options} | Acc]
    end, []).

-doc "The names of a group whose home is that node, with what they were registered with.".
-spec held_at(node(), term()) -> [{Name :: term(), pid(), [] | map()}].
held_at(Home, Group) ->
    [{Name, Pid, Options}
     || ?STORED(_, Name, Pid, _, _, _, Options) <- sderl_rows:at_home(Group, [Home])].

-doc "The first of the names of a group, at most so many at once.".
-spec names(term(), pos_integer()) -> {[{Name :: term(), pid()}], More :: term()} | '$end_of_table'.
names(Group, Most) ->
    ets:select(?NAMES, [{?STORED('$1', '$2', '$3', '_', '_', '_', '_'),
                         [{'=:=', '$1', {const, Group}}],
                         [{{'$2', '$3'}}]}], Most).

-doc "The next of them.".
-spec more_names(term()) -> {[{Name :: term(), pid()}], More :: term()} | '$end_of_table'.
more_names(More) -> ets:select(More).

-doc "How many names, of all groups, have a process on this node or another.".
-spec count_at(node()) -> non_neg_integer().
count_at(Node) ->
    ets:select_count(?NAMES, [{?STORED('_', '_', '$1', '_', '_', '_', '_'),
                               [{'=:=', {node, '$1'}, Node}],
                               [true]}]).

-doc """
The processes whose names match a pattern, in which `'_'` stands for anything. What is no pattern
matches nothing.
""".
-spec matching(term(), term()) -> [pid()].
matching(Group, Pattern) ->
    Spec = {?STORED('$1', Pattern, '$2', '_', '_', '_', '_'),
            [{'=:=', '$1', {const, Group}}],
            ['$2']},
    try [Pid || Pid <- ets:select(?NAMES, [Spec]), is_pid(Pid)]
    catch error:badarg when is_map(Pattern); is_tuple(Pattern); is_list(Pattern) -> []
    end.

-doc "All names of this node, also of a group that it left and that are about to go.".
-spec names() -> [{{Group :: term(), Name :: term()}, pid()}].
names() ->
    ets:select(?NAMES, [{?STORED('$1', '$2', '$3', '_', '_', '_', '_'),
                         [],
                         [{{{{'$1', '$2'}}, '$3'}}]}]).

-doc "All rows of an own group as `{Name, Pid}`, in no order.".
-spec names(term()) -> [{term(), pid()}].
names(G) ->
    sderl_rows:fold(G, fun(?STORED(_, Name, Pid, _, _, _, _), Acc) -> [{Name, Pid} | Acc] end, []).

-doc "How many names there are here, of all groups.".
-spec size() -> non_neg_integer().
size() -> ets:info(?NAMES, size).

-doc "The words of memory that they take.".
-spec words() -> non_neg_integer().
words() -> ets:info(?NAMES, memory).

-doc "How many names the group has here.".
-spec count(term()) -> non_neg_integer().
count(G) ->
    case ets:info(?GROUPS, size) =:= 1 andalso ets:member(?GROUPS, G) of
        %% No other group's names are there: a table knows its size.
        true -> ets:info(?NAMES, size);
        false -> counted(G)
    end.

-doc """
Forgets the names of a group. They go last: a reader that misses them finds that this node is no
member any more.
""".
-spec forget(term()) -> true.
forget(G) ->
    _ = ets:select_delete(?NAMES, of_group(G)),
    true.

counted(G) -> ets:select_count(?NAMES, of_group(G)).

of_group(G) ->
    [{?STORED('$1', '_', '_', '_', '_', '_', '_'), [{'=:=', '$1', {const, G}}], [true]}].
