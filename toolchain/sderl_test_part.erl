%% SPDX-License-Identifier: Apache-2.0
-module(sderl_test_part).
-moduledoc """
One part of a run of the tests, for `toolchain/test`, in a virtual machine of its own: suites of
Common Test from one folder, or modules of EUnit.

It is the Common Test hook of the suites, too: what became of each case is told in a line as soon as
it has ended. Cases print as well; they do it to the standard output, which is kept and not shown.
""".

-export([main/0]).
%% Common Test hook
-export([init/2, post_end_per_testcase/5, on_tc_fail/4, on_tc_skip/4]).
%% EUnit listener
-export([start/1, init/1, handle_begin/3, handle_end/3, handle_cancel/3, terminate/2]).

-behaviour(eunit_listener).

-doc """
As the arguments say: `suites TOLD LOGS FOLDER SUITE..`, `case TOLD LOGS FOLDER SUITE GROUP CASE`,
`eunit TOLD MODULE..`.
""".
-spec main() -> no_return().
main() ->
    [Kind, Told | Arguments] = init:get_plain_arguments(),
    %% Cases change the working directory.
    Good = run(Kind, filename:absname(Told), Arguments),
    halt(case Good of true -> 0; false -> 1 end).

tell(Told, Format, Arguments) ->
    ok = file:write_file(Told, unicode:characters_to_binary(io_lib:format(Format, Arguments)),
                         [append]).

run("suites", Told, [Logs, Folder | Suites]) ->
    test(Told, Logs, [{dir, Folder}, {suite, [list_to_atom(S) || S <- Suites]}]);
run("case", Told, [Logs, Folder, Suite, Group, Case]) ->
    test(Told, Logs, [{dir, Folder}, {suite, list_to_atom(Suite)}, {testcase, list_to_atom(Case)}]
         ++ [{group, list_to_atom(Group)} || Group =/= "-"]);
run("eunit", Told, Modules) ->
    lists:foldl(fun(Name, Good) -> unit(Told, list_to_atom(Name)) andalso Good end, true, Modules).

test(Told, Logs, What) ->
    case ct:run_test(What ++
                     [{logdir, Logs}, {auto_compile, false}, {ct_hooks, [{?MODULE, Told}]}]) of
        {_, 0, {_, 0}} -> true;
        {Good, Failed, {User, Auto}} when is_integer(Good + Failed + User + Auto) -> false;
        Other -> tell(Told, "~p~n", [Other]), false
    end.

%% ---------------------------------------------------------------- Common Test

-doc false.
init(_Id, Told) -> {ok, Told}.

-doc false.
post_end_per_testcase(Suite, Case, _Config, Return, Told) ->
    case is_tuple(Return) andalso lists:member(element(1, Return),
                                               [error, 'EXIT', failed, timetrap_timeout, skip]) of
        true -> ok; % told as a failure, or as skipped
        false -> tell(Told, "%%% ~s ==> ~ts: OK~n", [Suite, name(Case)])
    end,
    {Return, Told}.

-doc false.
on_tc_fail(Suite, Case, Reason, Told) ->
    tell(Told, "%%% ~s ==> ~ts: FAILED~n%%% ~tP~n", [Suite, name(Case), Reason, 200]),
    Told.

-doc false.
on_tc_skip(Suite, Case, Reason, Told) ->
    tell(Told, "%%% ~s ==> ~ts: SKIPPED~n%%% ~tP~n", [Suite, name(Case), Reason, 60]),
    Told.

name({Case, Group}) -> io_lib:format("~s.~s", [Group, Case]);
name(Case) -> io_lib:format("~s", [Case]).

%% ---------------------------------------------------------------- EUnit

%% What fails, and what the tests print, goes to the standard output.
unit(Told, Module) ->
    io:format("~n~s:~n", [Module]),
    Start = erlang:monotonic_time(millisecond),
    %% A busy machine fails no test: by default one has five seconds.
    Good = eunit:test({module, Module},
                      [{scale_timeouts, 12}, {report, {?MODULE, [{told, Told}]}}]) =:= ok,
    tell(Told, "=elapsed ~s ~w~n", [Module, erlang:monotonic_time(millisecond) - Start]),
    Good.

-doc false.
start(Options) -> eunit_listener:start(?MODULE, Options).

-doc false.
init(Options) -> proplists:get_value(told, Options).

-doc false.
handle_begin(_Kind, _Data, Told) -> Told.

-doc false.
handle_end(_Kind, _Data, Told) -> Told.

-doc false.
handle_cancel(_Kind, _Data, Told) -> Told.

-doc false.
terminate({ok, Counts}, Told) ->
    %% With a test that is cancelled so are all groups that it is in.
    [Pass, Fail, Skip, Cancel] = [proplists:get_value(K, Counts, 0)
                                  || K <- [pass, fail, skip, cancel]],
    tell(Told, "=tests ~w ~w ~w~n", [Pass, Fail + min(Cancel, 1), Skip]);
terminate({error, Reason}, Told) ->
    tell(Told, "=tests 0 1 0~n~tp~n", [Reason]).
