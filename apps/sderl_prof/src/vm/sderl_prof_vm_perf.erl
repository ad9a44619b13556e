%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_vm_perf).
-moduledoc """
What `perf` has said, as numbers: counters of the processor with the rates that are made of them,
and functions with their shares. Pure.
""".

-export([counters/2, functions/1, events/1, refusal/1]).
-export_type([counters/0, function_row/0]).

%% Bytes that one miss of the last cache brings from memory.
-define(LINE_BYTES, 64).
%% Functions that are told.
-define(MOST, 200).
%% Of what it said, when it could do nothing.
-define(MOST_SAID, 400).

-doc """
`counts`: events that the processor counted; `missing`: events that it does not count here; `rates`
as shares, but for `instructions_per_cycle` and `memory_bytes_s`, which is an estimate: the misses
of the last cache by the size of a line.
""".
-type counters() :: #{counts := #{binary() => number()}, missing := [binary()],
                      rates := #{atom() => float()}}.
-type function_row() :: #{share := float(), looks := integer(), object := unicode:chardata(),
                          function := unicode:chardata()}.

-doc "The counters of `perf stat -x \";\"`, of so many nanoseconds.".
-spec counters(binary(), Ns :: pos_integer()) -> counters().
counters(Said, Ns) ->
    Rows = [Row || Line <- lines(Said), Row <- counter(binary:split(Line, ~";", [global]))],
    Counts = #{Event => N || {Event, N} <- Rows, is_number(N)},
    #{counts => Counts, missing => [Event || {Event, missing} <- Rows],
      rates => maps:from_list(rates(Counts, Ns))}.

counter([Value, _Unit, Event | _]) when Event =/= ~"" ->
    %% "cycles:u" are those of the program without the kernel.
    [Name | _] = binary:split(Event, ~":"),
    case {Value, string:to_float(Value), string:to_integer(Value)} of
        {<<"<", _/binary>>, _, _} -> [{Name, missing}];
        {_, {N, _}, _} when is_float(N) -> [{Name, N}];
        {_, _, {N, _}} when is_integer(N) -> [{Name, N}];
        _ -> []
    end;
counter(_) -> [].

rates(Counts, Ns) ->
    Ratios = [
        {instructions_per_cycle, ~"instructions", ~"cycles"},
        {cache_misses, ~"cache-misses", ~"cache-references"},
        {last_cache_misses, ~"LLC-load-misses", ~"LLC-loads"},
        {branch_misses, ~"branch-misses", ~"branches"},
        {data_tlb_misses, ~"dTLB-load-misses", ~"dTLB-loads"},
        {instruction_tlb_misses, ~"iTLB-load-misses", ~"instructions"}
    ],
    [{Name, Part / Whole}
     || {Name, PartOf, Of} <- Ratios,
        #{PartOf := Part, Of := Whole} <- [Counts], Whole > 0] ++
    [{memory_bytes_s, ?LINE_BYTES * Misses / (Ns / 1.0e9)}
     || #{~"cache-misses" := Misses} <- [Counts]].

-doc "Events of one group, those of all places of a probe together.".
-spec events(binary()) -> #{Name :: unicode:chardata() => number()}.
events(Said) ->
    Rows = [{re:replace(Name, "__at[0-9]+$", "", [{return, binary}]), N}
            || Line <- lines(Said),
               [Value, _Unit, Event | _] <- [binary:split(Line, ~";", [global])],
               [_Group, Name | _] <- [binary:split(Event, ~":", [global])],
               {N, ~""} <- [string:to_integer(Value)], is_integer(N)],
    maps:map(fun(_, Counts) -> lists:sum(Counts) end,
             maps:groups_from_list(fun({Name, _}) -> Name end, fun({_, N}) -> N end, Rows)).

-doc "The functions of `perf report` in columns that tabulators part.".
-spec functions(binary()) -> #{event := binary(), rows := [function_row()]}.
functions(Said) ->
    Event = case re:run(Said, "(?m)^# Samples:.* of event '([^']*)'",
                        [{capture, all_but_first, binary}]) of
        {match, [Name]} -> Name;
        nomatch -> ~""
    end,
    #{event => Event,
      rows => lists:sublist([Row || Line <- lines(Said),
                                    Row <- function_row(binary:split(Line, ~"\t", [global]))],
                            ?MOST)}.

function_row([Overhead, Looks, Object | [_ | _] = Symbol]) ->
    maybe
        {Percent, Rest} ?= string:to_float(string:trim(Overhead)),
        true ?= is_float(Percent) andalso (Rest =:= ~"%" orelse Rest =:= ~""),
        {N, _} ?= string:to_integer(string:trim(Looks)),
        true ?= is_integer(N),
        [#{share => Percent / 100, looks => N, object => string:trim(Object),
           function => name(string:trim(iolist_to_binary(lists:join(~" ", Symbol))))}]
    else
        _ -> []
    end;
function_row(_) -> [].

%% Behind the mark of where it is: [.] in the program, [k] in the kernel.
name(<<"[", _, "] ", Name/binary>>) -> Name;
name(Name) -> Name.

-doc "What it said when it could do nothing, on one line.".
-spec refusal(binary()) -> binary().
refusal(Said) ->
    Words = lists:join(~" ", [Word || Line <- lines(Said), Word <- [string:trim(Line)],
                                      Word =/= ~"", Word =/= ~"Error:"]),
    case unicode:characters_to_binary(string:slice(Words, 0, ?MOST_SAID)) of
        Text when is_binary(Text) -> Text
    end.

%% It may be cut within a character, or hold names that are no text.
lines(Said) ->
    Text = case unicode:characters_to_binary(Said) of
        Whole when is_binary(Whole) -> Whole;
        _ -> unicode:characters_to_binary(Said, latin1)
    end,
    binary:split(Text, ~"\n", [global]).
