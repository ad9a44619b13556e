%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_matrix).
-moduledoc """
The points that are measured: each number of schedulers, or of nodes with as many schedulers each,
with each combination of the values of some flags on each OTP. One scheduler, or one node, is always
among them.

Flags that would disturb the measurement are refused here. Combinations that the virtual machine
would accept and silently ignore are left out; so are, by `ignored/2`, points whose virtual machine
did not do what was asked for. Unknown flags and values are left to the virtual machine, whose own
message is shown.
""".

-export([points/1, ignored/2, flags/1, vary/1, arguments/1, text/1, fields/1, ends/1]).
-export_type([point/0, flag/0, axis/0, matrix/0, facts/0]).

-doc "A flag and its value; `\"\"` for a flag without one.".
-type flag() :: {Name :: string(), Value :: string()}.

-doc "A flag and the values to go through, `none` to leave it out.".
-type axis() :: {Name :: string(), [string() | none, ...]}.

-doc "With `nodes`, `schedulers` is the one number that each node has.".
-type matrix() :: #{
    schedulers := [pos_integer()],
    nodes => [pos_integer()],
    flags := [flag()],
    vary := [axis()],
    otps := [string(), ...]
}.

-doc """
`otp` is a name that the user gives. With `nodes`, `schedulers` is the number of each node; without,
the virtual machine is not a node.
""".
-type point() :: #{schedulers := pos_integer(), nodes => pos_integer(), flags := [flag()],
                   otp := string()}.

-doc "What a virtual machine reports of itself, among other things.".
-type facts() :: #{dirty_cpu := non_neg_integer(), dirty_cpu_online := non_neg_integer(),
                   bind_type := atom(), bindings := [unbound | non_neg_integer()],
                   atom() => term()}.

-define(MOST, 10_000).
%% Flags that belong to an option, or that change what the measurement itself needs.
-define(RESERVED, #{
    "S" => "use --schedulers",
    "SP" => "use --schedulers",
    "B" => "it changes how the virtual machine is stopped",
    "V" => "it prints the version and measures nothing",
    "l" => "it prints what is loaded",
    "v" => "it prints what the emulator does",
    "i" => "it starts another module than init",
    "b" => "it starts another function than boot"
}).
%% Flags that are recognised here, also with their value attached, as in +SDcpu4:4. A flag that
%% begins with another one comes before it.
-define(KNOWN, ["SDcpu", "SP", "S", "stbt", "sbt", "sub", "scl", "B", "V", "l", "v", "i", "b"]).

-doc """
All points, each once, in the order of the axes, without impossible combinations of flags, for each
of which there is a text. It is an error if no point is possible.
""".
-spec points(matrix()) ->
    {ok, [point(), ...], LeftOut :: [unicode:chardata()]} | {error, unicode:chardata()}.
points(#{flags := Flags, vary := Axes, otps := Otps} = Matrix) ->
    Sizes = sizes(Matrix),
    Count = lists:foldl(fun({_, Values}, N) -> N * length(Values) end,
                        length(Sizes) * length(Otps), Axes),
    maybe
        ok ?= once(Flags, Axes),
        {true, _} ?= {Count =< ?MOST, Count},
        All = [Flags ++ lists:append(Chosen) || Chosen <- combined(Axes)],
        LeftOut = [[shown(Set), ": ", Why] || Set <- All, Why <- lists:sublist(apart(Set), 1)],
        {[_ | _] = Sets, _} ?= {[Set || Set <- All, apart(Set) =:= []], LeftOut},
        Points = [Size#{flags => Set, otp => Otp} || Otp <- Otps, Set <- Sets, Size <- Sizes],
        {ok, Points, LeftOut}
    else
        {[], [Text | _]} ->
            {error, ["no point is possible: ", Text, "; leave one of them out"]};
        {false, _} ->
            {error, io_lib:format("these are ~w points, and more than ~w are refused: vary less",
                                  [Count, ?MOST])};
        {error, Text} ->
            {error, Text}
    end.

sizes(#{nodes := Nodes, schedulers := [Schedulers]}) ->
    [#{schedulers => Schedulers, nodes => N} || N <- lists:usort([1 | Nodes])];
sizes(#{schedulers := Schedulers}) ->
    [#{schedulers => N} || N <- lists:usort([1 | Schedulers])].

combined([]) -> [[]];
combined([{Name, Values} | Axes]) ->
    [[flag(Name, Value) | Others] || Value <- Values, Others <- combined(Axes)].

flag(_, none) -> [];
flag(Name, Value) -> [{Name, Value}].

once(Flags, Axes) ->
    Names = [Name || {Name, _} <- Flags] ++ [Name || {Name, _} <- Axes],
    case Names -- lists:uniq(Names) of
        [] -> ok;
        [Twice | _] ->
            {error, ["+", Twice, " is given twice; give a flag once, in --flags or --vary"]}
    end.

%% Why the flags of a set exclude each other; empty if they do not.
apart(Set) -> [Text || {Some, Text} <- clashes(), Some -- Set =:= []] ++ both(Set).

clashes() ->
    [{[{"sub", "true"}, {"scl", "true"}],
      "balancing of utilisation (+sub true) turns the compaction of load (+scl true) off"}].

both(Set) ->
    ["+stbt and +sbt both bind schedulers; the first only tries to"
     || lists:keymember("stbt", 1, Set), lists:keymember("sbt", 1, Set)].

-doc "What the flags of a point ask for and its virtual machine did not do, in words.".
-spec ignored(point(), facts()) -> [unicode:chardata()].
ignored(#{flags := Flags}, Facts) ->
    lists:append([undone(Name, Value, Facts) || {Name, Value} <- Flags]).

undone("SDcpu", Value, #{dirty_cpu := Count, dirty_cpu_online := Online}) ->
    Wanted = [integer(Word) || Word <- string:split(Value, ":")],
    case [ok || {N, Has} <- lists:zip(Wanted, lists:sublist([Count, Online], length(Wanted))),
                is_integer(N), N =/= Has] of
        [] -> [];
        _ -> [io_lib:format("it has ~w dirty CPU schedulers, ~w of them online: never more than "
                            "schedulers", [Count, Online])]
    end;
undone(Name, Value, Facts) when Name =:= "stbt"; Name =:= "sbt" ->
    unbound(bind_type(Value), Facts);
undone(_, _, _) ->
    [].

integer(Word) ->
    case string:to_integer(Word) of
        {N, ""} when is_integer(N) -> N;
        _ -> none
    end.

%% The reported bind type is what was asked for, if binding is possible at all. The bindings show
%% whether a scheduler is bound.
unbound(unbound, _) ->
    [];
unbound(Type, #{bind_type := Has, bindings := Bindings}) ->
    case {[B || B <- Bindings, B =:= unbound], Type =:= any orelse Type =:= Has} of
        {[], true} -> [];
        {[], false} -> [io_lib:format("its schedulers are bound by ~ts", [Has])];
        {Free, _} -> [io_lib:format("~w of its ~w schedulers are bound to no processor",
                                    [length(Free), length(Bindings)])]
    end.

bind_type("u") -> unbound;
bind_type("ns") -> no_spread;
bind_type("ts") -> thread_spread;
bind_type("ps") -> processor_spread;
bind_type("s") -> spread;
bind_type("nnts") -> no_node_thread_spread;
bind_type("nnps") -> no_node_processor_spread;
bind_type("tnnps") -> thread_no_node_processor_spread;
%% The default is that of the OTP.
bind_type(_) -> any.

-doc """
The flags of a text as on the command line of `erl`: `+sbt db +sub true`. A flag without a value
stands alone.
""".
-spec flags(string()) -> {ok, [flag()]} | {error, unicode:chardata()}.
flags(Text) -> flags(string:lexemes(Text, " \t"), []).

flags([], Latest) ->
    {ok, lists:reverse(Latest)};
flags([[$+ | Given] | Words], Latest) when Given =/= "" ->
    {Name, Value, Rest} = case {apart_from(Given, ?KNOWN), Words} of
        {{Flag, [_ | _] = Attached}, _} -> {Flag, Attached, Words};
        {_, [[C | _] = Word | More]} when C =/= $+, C =/= $- -> {Given, Word, More};
        _ -> {Given, "", Words}
    end,
    case refused(Name) of
        ok -> flags(Rest, [{Name, Value} | Latest]);
        {error, Why} -> {error, Why}
    end;
flags([Word | _], _) ->
    {error, io_lib:format("\"~ts\" is no flag of the virtual machine: these begin with +", [Word])}.

%% The flag and the attached value. +SDio begins with S but is another flag: the value of +S is a
%% number, or two with a colon.
apart_from(Given, ["S" | Known]) ->
    case Given of
        [$S, C | Value] when C >= $0, C =< $9; C =:= $: -> {"S", [C | Value]};
        _ -> apart_from(Given, Known)
    end;
apart_from(Given, [Flag | Known]) ->
    case string:prefix(Given, Flag) of
        nomatch -> apart_from(Given, Known);
        Value -> {Flag, Value}
    end;
apart_from(Given, []) ->
    {Given, ""}.

refused(Given) ->
    {Name, _} = apart_from(Given, ?KNOWN),
    case ?RESERVED of
        #{Name := Why} -> {error, ["+", Name, " cannot be given here: ", Why]};
        #{} -> ok
    end.

-doc """
An axis, as `sbwt=-,none,very_long`: a flag without its plus, and its values; `-` leaves the flag
out.
""".
-spec vary(string()) -> {ok, axis()} | {error, unicode:chardata()}.
vary(Text) ->
    maybe
        [Given, [_ | _] = Listed] ?= string:split(Text, "="),
        [_ | _] = Name ?= string:trim(Given, leading, "+"),
        [] ?= [C || C <- Name, C =< $\s],
        Values = [string:trim(Value) || Value <- string:split(Listed, ",", all)],
        [] ?= [Value || Value <- Values, Value =:= "" orelse lists:member($\s, Value)],
        ok ?= refused(Name),
        {ok, {Name, lists:uniq([case Value of "-" -> none; _ -> Value end || Value <- Values])}}
    else
        {error, Why} -> {error, Why};
        _ -> {error, ["--vary ", Text, ": it has the form FLAG=VALUE,VALUE, as in "
                                       "sbwt=-,none,very_long (- leaves the flag out)"]}
    end.

-doc "The arguments of `erl` for a point, the same for each of its nodes.".
-spec arguments(point()) -> [string()].
arguments(#{schedulers := N, flags := Flags}) ->
    Count = integer_to_list(N),
    ["+S", Count ++ ":" ++ Count
     | lists:append([[[$+ | Name] | [Value || Value =/= ""]] || {Name, Value} <- Flags])].

-doc "The flags and the OTP of a point in words, without its size.".
-spec text(#{flags := [flag()], otp := string(), _ => _}) -> string().
text(#{flags := Flags, otp := Otp}) ->
    lists:flatten(lists:join(", ", [shown(Flags) || Flags =/= []] ++
                                       [["OTP ", Otp] || Otp =/= ""])).

shown(Flags) ->
    lists:join(" ", [["+", Name, [[" ", Value] || Value =/= ""]] || {Name, Value} <- Flags]).

-doc "A point as it is in a line of a file of results.".
-spec fields(point()) -> #{atom() => term()}.
fields(#{flags := Flags, otp := Otp} = Point) ->
    (sderl_bench_vm_size:fields(sderl_bench_vm_size:of_point(Point)))#{
        flags => unicode:characters_to_binary(text(#{flags => Flags, otp => ""})),
        otp => unicode:characters_to_binary(Otp)
    }.

-doc """
The first and the last point of the first series: one scheduler, or node, and the most of them. One
point if they are the same.
""".
-spec ends([point(), ...]) -> [point(), ...].
ends([#{flags := Flags, otp := Otp} | _] = Points) ->
    Mine = [Point || #{flags := F, otp := O} = Point <- Points, F =:= Flags, O =:= Otp],
    lists:uniq([hd(Mine), lists:last(Mine)]).
