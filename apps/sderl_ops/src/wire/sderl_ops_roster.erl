%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_roster).
-moduledoc """
The members of a service with several, as an operator writes them: `NAME@ADDRESS` or
`NAME@ADDRESS:PORT`. Pure.
""".

-export([parse/1, parse_list/1, check/2, added/2, named/2, words/1, is_one_machine/1]).
-export_type([member/0]).

-doc """
`address` has a dot. The member is the Erlang node NAME@ADDRESS, and listens at `port` there.
""".
-type member() :: #{node := node(), address := string(), port := inet:port_number()}.

%% The port of a member that names none.
-define(PORT, 4381).
-define(MOST, 7).

-doc "One member. An error is a sentence.".
-spec parse(string()) -> {ok, member()} | {error, unicode:chardata()}.
parse(Text) ->
    maybe
        {ok, Parts} ?= parts(Text),
        {ok, member(Parts)}
    end.

%% Atoms are made only of accepted names.
parts(Text) ->
    Pattern = "^([a-z][a-z0-9_-]{0,30})@([A-Za-z0-9-]+(?:\\.[A-Za-z0-9-]+)+)(?::([0-9]{1,5}))?$",
    case re:run(Text, Pattern, [{capture, all_but_first, list}, dollar_endonly]) of
        {match, [Name, Address]} -> {ok, {Name, Address, ?PORT}};
        {match, [Name, Address, Port]} -> numbered(Text, {Name, Address, list_to_integer(Port)});
        nomatch ->
            {error, [Text, " is not a member: NAME@ADDRESS or NAME@ADDRESS:PORT, such as "
                     "ops1@10.0.0.1, where the address has a dot and the name begins with a small "
                     "letter"]}
    end.

numbered(_, {_, _, Port} = Parts) when Port > 0, Port < 65_536 -> {ok, Parts};
numbered(Text, _) -> {error, [Text, ": a port is 1 to 65535"]}.

member({Name, Address, Port}) ->
    #{node => list_to_atom(name(Name, Address)), address => Address, port => Port}.

name(Name, Address) -> Name ++ "@" ++ Address.

-doc "Several members, separated by commas. The result is sorted by name.".
-spec parse_list(string()) -> {ok, [member(), ...]} | {error, unicode:chardata()}.
parse_list(Text) ->
    Parsed = [parse(string:trim(Part)) || Part <- string:split(Text, ",", all)],
    case [Why || {error, Why} <- Parsed] of
        [Why | _] -> {error, Why};
        [] -> distinct(lists:sort([Member || {ok, Member} <- Parsed]))
    end.

distinct(Members) ->
    Nodes = [Node || #{node := Node} <- Members],
    Doors = [{Address, Port} || #{address := Address, port := Port} <- Members],
    case {length(Members), length(lists:usort(Nodes)), length(lists:usort(Doors))} of
        {Count, _, _} when Count > ?MOST ->
            {error, too_many(Count)};
        {Count, Count, Count} ->
            {ok, Members};
        {Count, Count, _} ->
            {error, "two members have the same address and port: on one machine each needs a port "
                    "of its own, NAME@ADDRESS:PORT"};
        _ ->
            {error, "a member is there twice"}
    end.

-doc "Checks that a member is one of these, and that there are not just two.".
-spec check(Self :: node(), [member()]) -> ok | {error, unicode:chardata()}.
check(_, [_, _]) ->
    {error, "two members decide only while both run, so two are worse than one: name three"};
check(Self, Members) ->
    case [Node || #{node := Node} <- Members, Node =:= Self] of
        [_] -> ok;
        [] -> {error, [atom_to_list(Self), " is none of the members that are named"]}
    end.

too_many(Count) ->
    io_lib:format("~b members are too many: three or five are enough, ~b the most",
                  [Count, ?MOST]).

-doc "A member that is to be added to these, or added again.".
-spec added(string(), [member()]) -> {ok, member()} | {error, unicode:chardata()}.
added(Text, Members) ->
    maybe
        {ok, {Name, Address, Port} = Parts} ?= parts(Text),
        Others = [Member || #{node := Node} = Member <- Members,
                            atom_to_list(Node) =/= name(Name, Address)],
        ok ?= check_added(Address, Port, Others),
        {ok, member(Parts)}
    end.

check_added(_, _, Others) when length(Others) >= ?MOST ->
    {error, too_many(length(Others) + 1)};
check_added(Address, Port, Others) ->
    case [Other || #{address := At, port := Of} = Other <- Others, {At, Of} =:= {Address, Port}] of
        [] -> ok;
        [Other | _] ->
            {error, io_lib:format("~ts listens at ~ts, port ~b: `members remove` it first, or name "
                                  "another port", [words(Other), Address, Port])}
    end.

-doc "The member that an operator has named, with or without its port.".
-spec named(string(), [member()]) -> {ok, node()} | {error, unicode:chardata()}.
named(Text, Members) ->
    maybe
        {ok, {Name, Address, _}} ?= parts(Text),
        [Node] ?= [Node || #{node := Node} <- Members,
                           atom_to_list(Node) =:= name(Name, Address)],
        {ok, Node}
    else
        [] -> {error, ["there is no member ", Text, ": `members` lists them"]};
        {error, _} = Error -> Error
    end.

-doc "As an operator writes it.".
-spec words(member()) -> unicode:chardata().
words(#{node := Node, port := ?PORT}) -> atom_to_list(Node);
words(#{node := Node, port := Port}) -> [atom_to_list(Node), $:, integer_to_list(Port)].

-doc "Whether all members have one address, and so share the folders of one machine.".
-spec is_one_machine([member()]) -> boolean().
is_one_machine(Members) -> length(lists:usort([Address || #{address := Address} <- Members])) =< 1.
