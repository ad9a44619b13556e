%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_aco).
-moduledoc """
Runs a point of the ant colonies. A point names its instance by how it is generated, or by where it
is in the folder of instances; here the instance is made or read.

`SDERL_INSTANCES` names that folder. The published instances are in its subfolder `geiger`, in a
format that `sderl_aco_instance:read_all/1` reads.
""".

-export([run/2, listed/1, name/1]).

%% The hard ones of size 100 are used.
-define(FOLDER, "geiger").
-define(HARD, "wt_100_prime_").

-doc """
As `sderl_aco:run/2`, with an instance of a point. A reason is one of `sderl_papers_reason:text/1`.
""".
-spec run(#{atom() => term()}, Label :: unicode:chardata()) ->
    {ok, #{atom() => term()}} | {error, term()}.
run(#{instance := Of} = Params, Label) ->
    maybe
        {ok, Instance, Best} ?= instance(Of),
        sderl_aco:run(Params#{instance := Instance, best_known => Best}, Label)
    end.

instance(#{n := _, rdd := _, tf := _, seed := _} = Recipe) ->
    {ok, sderl_aco_instance:generate(Recipe), undefined};
instance(#{folder := Folder, name := Name}) ->
    case os:getenv("SDERL_INSTANCES", "") of
        "" ->
            {error, {said, io_lib:format("the instance ~ts/~ts is read from the folder that "
                                         "SDERL_INSTANCES names, and it is not set",
                                         [Folder, Name])}};
        Dir ->
            maybe
                {ok, [{Instance, Best} | _]} ?= sderl_aco_instance:read_all(
                    filename:join([Dir, binary_to_list(Folder), binary_to_list(Name) ++ ".txt"])
                ),
                {ok, Instance, Best}
            end
    end.

-doc "The hard instances of size 100 below a folder, as points name them. An error is a text.".
-spec listed(file:filename()) ->
    {ok, [sderl_reproduce_scale:instance(), ...]} | {error, sderl_command:text()}.
listed(Dir) ->
    Path = filename:join(Dir, ?FOLDER),
    Found = [
        {Number, list_to_binary([?HARD, Digits])}
     || File <- filelib:wildcard(?HARD "*.txt", Path),
        Digits <- [string:prefix(filename:rootname(File), ?HARD)],
        {Number, []} <- [string:to_integer(Digits)]
    ],
    case lists:sort(Found) of
        [] ->
            {error, ["SDERL_INSTANCES: there are no files ", filename:join(Path, ?HARD "*.txt"),
                     "; without it instances are generated"]};
        Sorted -> {ok, [#{folder => <<?FOLDER>>, name => Name} || {_, Name} <- Sorted]}
    end.

-doc "The name of an instance on a page, from the parameters of a measured point.".
-spec name(#{binary() => term()}) -> binary().
name(#{<<"folder">> := Folder, <<"name">> := Name}) -> <<Folder/binary, "/", Name/binary>>;
name(#{<<"n">> := N, <<"rdd">> := Rdd, <<"tf">> := Tf, <<"seed">> := Seed}) ->
    sderl_claim_points:text("size ~w, range ~w, tardiness ~w, seed ~w", [N, Rdd, Tf, Seed]).
