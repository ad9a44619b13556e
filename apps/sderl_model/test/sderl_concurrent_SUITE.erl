%% SPDX-License-Identifier: Apache-2.0
-module(sderl_concurrent_SUITE).

%% Clients on several nodes work at the same time, without failures. What they saw must have a legal
%% linearisation, for names and processes that they compete for.
%%
%% A failing case is shrunk by running parts of it, each up to 20 times, because concurrent clients
%% interleave differently in each run. SDERL_SEED=N runs the same cases again.

-compile([export_all, nowarn_export_all]).

-include_lib("proper/include/proper.hrl").

suite() -> [{timetrap, {minutes, 60}}].

all() -> [one_group, two_groups, majority].

init_per_suite(Config) ->
    Held = [{fleet, Fleet}, {nodes, Nodes} | _] = sderl_ct:hold(5, calm),
    ok = sderl_histories:clocks(Fleet, Nodes),
    Held ++ Config.

end_per_suite(Config) -> sderl_ct:release(Config).

%% Five members.
one_group(Config) -> conforms(Config, fun(Nodes) -> [{g, Nodes}] end, 150).

%% Two groups that share a member; clients there work in both, and processes have names in both.
two_groups(Config) ->
    conforms(Config, fun([A, B, C, D, E]) -> [{left, [A, B, C]}, {right, [C, D, E]}] end, 75).

%% One group that decides by majority. Without failures it answers as an available group does, and
%% refuses nothing.
majority(Config) ->
    conforms(Config, fun(Nodes) -> [{g, Nodes}] end, 40, #{consistency => majority}).

conforms(Config, Layout, Cases) -> conforms(Config, Layout, Cases, #{}).

conforms(Config, Layout, Cases, Options) ->
    {Fleet, Nodes} = {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)},
    Groups = Layout(Nodes),
    [[] = sderl_ct:group(Fleet, G, Ms, Options) || {G, Ms} <- Groups],
    Setting = sderl_histories:setting(Fleet, Nodes, Groups),
    Seed = sderl_ct:seed(),
    {Passed, Operations} = failing(Setting, times(Cases)),
    ct:pal("~b operations in ~b cases", [Operations, times(Cases)]),
    true =:= Passed orelse error({no_linearisation, {seed, Seed}, Passed}),
    [sderl_ct:delete(Fleet, G, hd(Ms)) || {G, Ms} <- Groups].

%% Runs cases until one fails. Returns the shrunk case, or `true` if none failed, and the number of
%% operations.
failing(Setting, Cases) ->
    %% Counters: the operations that were run, and whether a case has failed. If one has, each
    %% shrunk candidate gets more than one try.
    Tally = counters:new(2, []),
    Property = ?FORALL(Case, resize(14, sderl_histories:case_of(Setting)),
                       holds(Case, Setting, Tally)),
    %% PropEr keeps a seed that the calling process already has.
    _ = rand:seed(exsplus, rand:uniform(1 bsl 27)),
    Passed = proper:quickcheck(Property, [{numtests, Cases}, {max_shrinks, 200},
                                          {to_file, standard_io}, nocolors, long_result]),
    {Passed, counters:get(Tally, 1)}.

holds(Case, Setting, Tally) ->
    Tries = case counters:get(Tally, 2) of 0 -> 1; _ -> 20 end,
    holds(Tries, Case, Setting, Tally).

holds(0, _, _, _) -> true;
holds(Tries, Case, Setting, Tally) ->
    Histories = sderl_histories:run(Case, Setting),
    counters:add(Tally, 1, sderl_histories:count(Case)),
    case sderl_histories:check(Histories) of
        ok -> holds(Tries - 1, Case, Setting, Tally);
        Bad ->
            counters:put(Tally, 2, 1),
            ct:pal("~ts", [sderl_histories:failure(Case, Bad)]),
            false
    end.

times(Cases) -> case os:getenv("SDERL_LONG") of false -> Cases; _ -> 40 * Cases end.
