%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_sampling).
-moduledoc """
Samples a running node: what its processes do, as shares with intervals, at a cost that is bounded
by the number of looks a second. Traces nothing, and may run in production.

```erlang
{ok, Report} = sderl_prof_sampling:sample('shop1@10.0.0.1', #{seconds => 10}).
```

The report is a map that can be JSON (`m:sderl_prof_shares`).
""".

-export([sample/2, check/1, begin_/2, begin_all/2, await/1, stop/1, write/2, encode/1, read/1,
         format_error/1]).
-export_type([options/0, sampling/0, reason/0]).

-define(CALL_MS, 60_000).
-define(RATE, 1000).
-define(MOST_RATE, 100_000).
-define(SECONDS, 10).
-define(MOST_SECONDS, 86_400).
-define(TOP, 50).
-define(MOST_MAILBOXES, 50).

-doc """
`rate`: looks at a process in a second, at most, 1,000 by default; `seconds`: so long, 10 by
default; `top`: rows of each list, 50 by default; `mailboxes`: registered names of processes whose
mailbox lengths are recorded over time, 50 at most.
""".
-type options() :: #{rate => pos_integer(), seconds => number(), top => pos_integer(),
                     mailboxes => [atom()]}.
-type sampling() :: #{node := node(), sampler := pid(), monitor := reference(),
                      top := pos_integer()}.
-type reason() :: {option, atom(), term()} | {unknown_option, term()} | {bad_options, term()}
    | {node, node(), term()} | {file, file:filename_all(), term()}.

-doc "Samples a node, and reports when it has ended.".
-spec sample(node(), options()) -> {ok, sderl_prof_shares:report()} | {error, reason()}.
sample(Node, Options) ->
    maybe
        {ok, Sampling} ?= begin_(Node, Options),
        await(Sampling)
    end.

-doc """
Begins to sample. It ends in time, by `stop/1`, and with the process that calls this. A node without
this application is given the sampler.
""".
-spec begin_(node(), options()) -> {ok, sampling()} | {error, reason()}.
begin_(Node, Options) -> watched(started(Node, Options, self())).

-doc "Begins on several nodes at once, so that one that hangs holds up no other.".
-spec begin_all([node()], options()) -> [{ok, sampling()} | {error, reason()}].
begin_all(Nodes, Options) ->
    Self = self(),
    {ok, Begun} = sderl_prof_tasks:side_by_side([
        fun() ->
            try
                started(Node, Options, Self)
            catch
                _:Why -> {error, {node, Node, Why}}
            end
        end || Node <- Nodes
    ]),
    [watched(One) || One <- Begun].

started(Node, Options, Owner) ->
    maybe
        ok ?= check(Options),
        ok ?= sderl_prof_reach:load(Node, ?CALL_MS),
        Plan = #{rate => maps:get(rate, Options, ?RATE),
                 mailboxes => maps:get(mailboxes, Options, []),
                 milliseconds => max(1, round(1000 * maps:get(seconds, Options, ?SECONDS)))},
        {ok, Sampler} ?= sderl_prof_reach:call(Node, sderl_prof_sampler, start, [Plan, Owner],
                                               ?CALL_MS),
        {ok, #{node => Node, sampler => Sampler, top => maps:get(top, Options, ?TOP)}}
    end.

watched({ok, #{sampler := Sampler} = Sampling}) ->
    {ok, Sampling#{monitor => monitor(process, Sampler)}};
watched(Error) -> Error.

-doc "Whether these are options.".
-spec check(options()) -> ok | {error, reason()}.
check(Options) when is_map(Options) ->
    case [{Key, Value} || Key := Value <- Options, not is_valid(Key, Value)] of
        [] -> ok;
        [{Key, Value} | _] when Key =:= rate; Key =:= seconds; Key =:= top;
                                Key =:= mailboxes ->
            {error, {option, Key, Value}};
        [{Key, _} | _] -> {error, {unknown_option, Key}}
    end;
check(Options) -> {error, {bad_options, Options}}.

is_valid(rate, Rate) -> is_integer(Rate) andalso Rate >= 1 andalso Rate =< ?MOST_RATE;
is_valid(seconds, S) -> is_number(S) andalso S > 0 andalso S =< ?MOST_SECONDS;
is_valid(top, Top) -> is_integer(Top) andalso Top >= 1;
is_valid(mailboxes, Names) -> is_names(Names, 0);
is_valid(_, _) -> false.

%% The list may be improper.
is_names([Name | Names], N) when is_atom(Name), N < ?MOST_MAILBOXES -> is_names(Names, N + 1);
is_names(Rest, _) -> Rest =:= [].

-doc "Waits until it has ended.".
-spec await(sampling()) -> {ok, sderl_prof_shares:report()} | {error, reason()}.
await(#{node := Node, sampler := Sampler, monitor := Monitor, top := Top}) ->
    receive
        {sderl_prof_sampled, Sampler, Result} ->
            true = demonitor(Monitor, [flush]),
            {ok, sderl_prof_shares:report(Result, Top)};
        {'DOWN', Monitor, process, _, Why} -> {error, {node, Node, Why}}
    end.

-doc "Ends it before its time; `await/1` tells what there is.".
-spec stop(sampling()) -> ok.
stop(#{sampler := Sampler}) -> sderl_prof_sampler:stop(Sampler).

-doc "Writes the reports of one or several nodes to a file.".
-spec write(file:filename_all(), [sderl_prof_shares:report(), ...]) -> ok | {error, reason()}.
write(File, Reports) ->
    maybe
        ok ?= filelib:ensure_dir(File),
        ok ?= sderl_prof_beside:write(File, fun(Own) ->
            file:write_file(Own, [encode(Reports), $\n])
        end)
    else
        {error, {place, Why}} -> {error, {file, File, Why}};
        {error, Why} -> {error, {file, File, Why}}
    end.

-doc "One report, or several with `nodes` around them.".
-spec encode([map(), ...]) -> iodata().
encode([Report]) -> json:encode(Report);
encode(Reports) -> json:encode(#{kind => samplings, nodes => Reports}).

-doc "Reads them again; their keys are binaries, as JSON has them.".
-spec read(file:filename_all()) -> {ok, [map(), ...]} | {error, reason()}.
read(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            try json:decode(Text) of
                #{~"kind" := ~"samplings", ~"nodes" := [_ | _] = Reports} -> reports(Reports, File);
                Report -> reports([Report], File)
            catch
                error:_ -> {error, {file, File, none}}
            end;
        {error, Why} -> {error, {file, File, Why}}
    end.

reports(Reports, File) ->
    case lists:all(fun is_report/1, Reports) of
        true -> {ok, Reports};
        false -> {error, {file, File, none}}
    end.

is_report(#{~"kind" := ~"sampling", ~"node" := Node, ~"seconds" := Seconds, ~"looks" := Looks,
            ~"rounds" := Rounds, ~"own_share" := Own, ~"counted_share" := Counted,
            ~"processes" := Processes, ~"states" := States, ~"groups" := Groups,
            ~"functions" := Functions, ~"waits" := Waits, ~"schedulers" := Schedulers,
            ~"threads" := Threads}) ->
    is_binary(Node)
        andalso lists:all(fun is_number/1, [Seconds, Looks, Rounds, Own, Counted, Processes])
        andalso lists:all(fun is_list/1, [States, Groups, Functions, Waits, Schedulers, Threads]);
is_report(_) -> false.

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({bad_options, Options}) ->
    io_lib:format("options are a map, not ~0tP", [Options, 10]);
format_error({unknown_option, Key}) ->
    io_lib:format("there is no option ~0tp; there are rate, seconds, top and mailboxes", [Key]);
format_error({option, rate, Value}) ->
    io_lib:format("rate cannot be ~0tP: it is a whole number from 1 to ~b, of looks at a process "
                  "in a second", [Value, 10, ?MOST_RATE]);
format_error({option, seconds, Value}) ->
    io_lib:format("seconds cannot be ~0tP: it is a number above 0 and at most ~b",
                  [Value, 10, ?MOST_SECONDS]);
format_error({option, top, Value}) ->
    io_lib:format("top cannot be ~0tP: it is a whole number above 0", [Value, 10]);
format_error({option, mailboxes, Value}) ->
    io_lib:format("mailboxes cannot be ~0tP: it is a list of at most ~b registered names",
                  [Value, 10, ?MOST_MAILBOXES]);
format_error({file, File, none}) ->
    io_lib:format("~ts holds no samples; bin/sderl prof sample writes them", [File]);
format_error({file, File, Why}) -> io_lib:format("~ts: ~ts", [File, file:format_error(Why)]);
format_error({node, _, _} = Why) -> sderl_prof_failure:format(Why).
