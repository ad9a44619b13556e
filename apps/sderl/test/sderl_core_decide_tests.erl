%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_decide_tests).
-moduledoc """
A batch that is decided against the table alone is as it would be with the overlay: generated lists
of registrations and removals of few names by few processes, once as they are and once with a read
after them, which needs the overlay.
""".

-include_lib("eunit/include/eunit.hrl").
-include("../src/core/sderl_core.hrl").

%% The store.
-export([lookup/2, name_of/2]).

-define(MEMBERS, ['n1@t', 'n2@t', 'n3@t']).
-define(NAMES, 8).
-define(PIDS, 2).

same_answers_as_with_the_overlay_test() ->
    Seed = rand:uniform(1 bsl 32),
    _ = rand:seed(exsss, Seed),
    ok = lists:foreach(fun(_) -> same_answers(Seed) end, lists:seq(1, 1000)).

same_answers(Seed) ->
    Store = drawn_store(),
    Lists = [{Member, drawn_operations(Member)} || Member <- ?MEMBERS],
    {Plain, PlainIndex} = decided(Lists, Store),
    Read = #read{name = nobody},
    {Overlaid, OverlaidIndex} = decided(Lists ++ [{'n4@t', [Read]}], Store),
    ?assertEqual(Plain, lists:droplast(Overlaid), {seed, Seed, Lists, Store}),
    ?assertEqual(PlainIndex, OverlaidIndex, {seed, Seed, Lists, Store}).

%% What clients are told, and the index as it is afterwards.
decided(Lists, {_, Pids} = Store) ->
    Requests = [?LIST(Member, 1, 1, Operations) || {Member, Operations} <- lists:reverse(Lists)],
    Members = ['n4@t' | ?MEMBERS],
    Epoch = {1, 'n1@t'},
    S = #s{
        self = 'n1@t',
        office = #office{requests = Requests},
        d = #d{
            mem = sderl_membership:new(Members),
            sid = 1,
            epoch = Epoch,
            lineage = Epoch,
            view = #{Member => live || Member <- Members}
        }
    },
    {Items, Index, [], _} = sderl_core_decide:batch(?MODULE, Store, S),
    Write = fun
        ({Pid, none}, Acc) -> maps:remove(Pid, Acc);
        ({Pid, [Name]}, Acc) -> Acc#{Pid => Name}
    end,
    {[answers(Item) || Item <- Items], lists:foldl(Write, Pids, Index)}.

answers(#seg{operations = Operations, answers = default}) ->
    [sderl_core_answer:default(Operation) || Operation <- Operations];
answers(#seg{answers = Answers}) ->
    [sderl_core_answer:plain(Answer) || Answer <- Answers].

lookup({Rows, _}, Name) -> maps:get(Name, Rows, none).

name_of({_, Pids}, Pid) ->
    case Pids of
        #{Pid := Name} -> {ok, Name};
        _ -> none
    end.

%% Each process has one name at most.
drawn_store() ->
    Rows = lists:foldl(fun(Pid, Acc) ->
        Name = drawn_name(),
        case rand:uniform(3) =:= 1 andalso not is_map_key(Name, Acc) of
            true -> Acc#{Name => ?ROW(Name, Pid, node(Pid), {{1, 'n1@t'}, 1}, [])};
            false -> Acc
        end
    end, #{}, [pid(Node, K) || Node <- ?MEMBERS, K <- lists:seq(1, ?PIDS)]),
    {Rows, #{Pid => Name || Name := ?ROW_OF(Pid) <- Rows}}.

drawn_operations(Member) -> [drawn_operation(Member) || _ <- lists:seq(1, rand:uniform(2))].

drawn_operation(Member) ->
    case rand:uniform(2) of
        1 -> ?UNREGISTER(drawn_name());
        2 -> ?REGISTER(drawn_name(), drawn_pid(Member))
    end.

drawn_name() -> rand:uniform(?NAMES).

%% Mostly of the member's own node.
drawn_pid(Member) ->
    Node = case rand:uniform(4) of
        1 -> lists:nth(rand:uniform(3), ?MEMBERS);
        _ -> Member
    end,
    pid(Node, rand:uniform(?PIDS)).

%% A process of another node, in the external term format.
pid(Node, Id) ->
    Name = atom_to_binary(Node),
    binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, Id:32, 0:32, 77:32>>).
