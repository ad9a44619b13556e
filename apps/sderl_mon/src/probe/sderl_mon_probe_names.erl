%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_names).
-moduledoc """
Reads the names of the probe's node on demand, bounded by number and by time.

A node without the library answers `not_running`.
""".

-export([names/3, lookup/2]).
-export([meant/1]).

-import(sderl_mon_probe_text, [id/1, own_pid/1]).
-import(sderl_mon_probe_work, [now_ms/0]).

-define(LOOK_MS, 200).

-doc """
Names of a group of this node, given as itself or by its id, in no order: those whose text begins
with `prefix`, at most `limit` (100; 500 at most). Searches for 200 ms at most. `more`: there may be
others. `total`: how many the group has; `Told` says it where it would have to be counted (`none`:
unknown, and `total` is how many were found).
""".
-spec names(Group :: term(), sderl_mon_types:names_opts(), Told) ->
    {ok, sderl_mon_types:names()} | {error, no_group | not_running | busy}
when
    Told :: fun((Group :: term()) -> non_neg_integer() | none).
names(Group, Opts, Told) ->
    with_group(Group, fun(G) ->
        Limit = min(500, maps:get(limit, Opts, 100)),
        Prefix = maps:get(prefix, Opts, <<>>),
        {Found, More} = page(sderl_observed:names(G, 500), Prefix, Limit, until(), []),
        {ok, #{names => Found, total => total(G, Prefix, Found, More, Told), more => More}}
    end).

page('$end_of_table', _, _, _, Acc) -> {Acc, false};
page({Rows, Cont}, Prefix, Limit, Until, Acc) ->
    Size = byte_size(Prefix),
    Found = [
        named(Text, Pid)
     || {Name, Pid} <- Rows,
        Text <- [id(Name)],
        Size =:= 0 orelse binary:longest_common_prefix([Text, Prefix]) =:= Size
    ],
    All = lists:sublist(Acc ++ Found, Limit + 1),
    case length(All) > Limit orelse now_ms() > Until of
        true -> {lists:sublist(All, Limit), true};
        false -> page(sderl_observed:more_names(Cont), Prefix, Limit, Until, All)
    end.

until() -> now_ms() + ?LOOK_MS.

named(Text, Pid) -> #{name => Text, pid => own_pid(Pid), node => node(Pid)}.

-doc """
A name of a group of this node by its text. The terms that the text may stand for are tried first;
then all names are compared, which finds other types (tuples), for 200 ms at most.

Errors: `not_found`, `timeout` (not found so far), `no_group`, `not_running`, `busy`.
""".
-spec lookup(Group :: term(), binary()) ->
    {ok, sderl_mon_types:name()} | {error, not_found | timeout | no_group | not_running | busy}.
lookup(Group, Text) ->
    with_group(Group, fun(G) ->
        case [Pid || Name <- meant(Text), Pid <- [sderl_observed:pid(G, Name)], Pid =/= none] of
            [Pid | _] -> {ok, named(Text, Pid)};
            [] -> find(sderl_observed:names(G, 500), Text, until())
        end
    end).

find('$end_of_table', _, _) -> {error, not_found};
find({Rows, Cont}, Text, Until) ->
    case [Pid || {Name, Pid} <- Rows, id(Name) =:= Text] of
        [Pid | _] -> {ok, named(Text, Pid)};
        [] ->
            case now_ms() > Until of
                true -> {error, timeout};
                false -> find(sderl_observed:more_names(Cont), Text, Until)
            end
    end.

%% The terms that a text may stand for: existing atoms, binaries, strings and integers.
-doc false.
-spec meant(binary()) -> [term()].
meant(Text) ->
    Inner = case Text of
        <<$', Quoted/binary>> -> [Quoted];
        <<$", Quoted/binary>> -> [Quoted];
        <<"<<\"", Quoted/binary>> -> [Quoted];
        _ -> []
    end,
    Bare = [binary:part(I, 0, byte_size(I) - N) || I <- Inner, N <- [1, 3, 8], byte_size(I) >= N],
    Atoms = [fun() -> binary_to_existing_atom(T) end || T <- [Text | Bare]],
    Texts = [F || B <- Bare, F <- [fun() -> B end, fun() -> chars(B) end, fun() -> bytes(B) end]],
    Integer = fun() -> binary_to_integer(Text) end,
    Tries = Atoms ++ [Integer | Texts],
    [Name || Try <- Tries, Name <- try [Try()] catch error:_ -> [] end, id(Name) =:= Text].

chars(Text) -> unicode:characters_to_list(Text).

bytes(Text) -> list_to_binary(chars(Text)).

with_group(Group, Fun) ->
    sderl_mon_probe_bound:looking(fun() ->
        try sderl_observed:own_groups() of
            Groups ->
                case [G || G <- Groups, G =:= Group orelse id(G) =:= Group] of
                    [G | _] -> Fun(G);
                    [] -> {error, no_group}
                end
        catch error:Reason when Reason =:= badarg; Reason =:= undef -> {error, not_running}
        end
    end).

%% Counting walks the table, so it is not done for each question.
total(_, <<>>, Found, false, _) -> length(Found);
total(G, _, Found, _, Told) ->
    case sderl_observed:own_groups() of
        [G] -> sderl_observed:count_names();
        _ -> case Told(G) of none -> length(Found); N -> max(N, length(Found)) end
    end.
