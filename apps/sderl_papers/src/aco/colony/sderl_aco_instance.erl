%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_instance).
-moduledoc """
Instances of the single machine total weighted tardiness problem.

Jobs 1 to n, one after the other on one machine without a pause; job j takes `p`, weighs `w` and is
due at `d`. The cost of a schedule is the sum of w x max(0, C - d), where C is when the job is done.
""".

-export([read/1, read_all/1, read_all/2]).
-export([generate/1, standard/2, tardiness/2, edd/1]).
-export_type([instance/0, job/0]).

-doc """
Durations, weights and due dates are tuples of `n` integers: those of job j are `element(J, _)`.
""".
-type instance() ::
    #{name := binary(), n := pos_integer(), p := tuple(), w := tuple(), d := tuple()}.
-type job() :: pos_integer().

%% The largest size of a file with instances.
-define(MOST_BYTES, 64_000_000).

-doc "The one instance of a file, see `m:sderl_aco_file`.".
-spec read(file:filename()) -> {ok, instance()} | {error, {aco, sderl_aco_file:reason()}}.
read(File) ->
    maybe
        {ok, [{Instance, _} | Others]} ?= read_all(File),
        case Others of
            [] -> {ok, Instance};
            _ ->
                {error, {aco,
                         {bad_file, File, 1,
                          io_lib:format("expected one instance, found ~w", [1 + length(Others)])}}}
        end
    end.

-doc "As `read_all/2`.".
-spec read_all(file:filename()) -> {ok, [{instance(), BestKnown :: non_neg_integer() | undefined}]}
                                   | {error, {aco, sderl_aco_file:reason()}}.
read_all(Path) -> read_all(Path, #{}).

-doc """
The instances of a file, or of all files of a folder and its subfolders, by name, with their
best-known costs where there are lists of these (`m:sderl_aco_known`): in the folder, in its
subfolders, or, if there are none, in the folder above.

`n`: the number of jobs, for files that begin without it and whose names do not tell. Files whose
names begin with a dot or `README`, or end in `.md` or `.html`, are left out. Of instances that have
the same name the first is taken.
""".
-spec read_all(file:filename(), #{n => pos_integer()}) ->
    {ok, [{instance(), BestKnown :: non_neg_integer() | undefined}]}
    | {error, {aco, sderl_aco_file:reason()}}.
read_all(Path, Options) ->
    maybe
        {ok, Files, Lists} ?= files(Path),
        {ok, Known} ?= each(Lists, fun sderl_aco_known:parse/2),
        {ok, Read} ?= each(Files, fun(File, Content) ->
            sderl_aco_file:parse(File, Content, maps:get(n, Options, undefined))
        end),
        Best = lists:foldl(fun(New, All) ->
            maps:merge_with(fun(_, A, B) -> min(A, B) end, New, All)
        end, #{}, Known),
        Instances = lists:uniq(fun(#{name := Name}) -> Name end, lists:append(Read)),
        Sorted = lists:sort([{order(Name), Instance} || #{name := Name} = Instance <- Instances]),
        {ok,
         [{Instance, maps:get(Name, Best, undefined)} || {_, #{name := Name} = Instance} <- Sorted]}
    else
        {error, Reason} -> {error, {aco, Reason}}
    end.

files(Path) ->
    case {filelib:is_dir(Path), filelib:is_regular(Path)} of
        {true, _} ->
            case within(Path) of
                {[], _} -> {error, {cannot_read, Path, no_instances}};
                {Files, []} -> {ok, Files, lists(filename:dirname(filename:absname(Path)))};
                {Files, Lists} -> {ok, Files, Lists}
            end;
        {false, true} ->
            case lists(filename:dirname(Path)) of
                [] ->
                    {ok, [Path], lists(filename:dirname(filename:dirname(filename:absname(Path))))};
                Lists -> {ok, [Path], Lists}
            end;
        {false, false} ->
            case file:read_file_info(Path) of
                {error, Reason} -> {error, {cannot_read, Path, Reason}};
                {ok, _} -> {error, {cannot_read, Path, not_regular}}
            end
    end.

within(Dir) ->
    All = [File
           || File <- lists:sort(filelib:wildcard("**", Dir)),
              filelib:is_regular(filename:join(Dir, File)), not is_other(filename:basename(File))],
    {Lists, Files} = lists:partition(fun sderl_aco_known:is_list/1, All),
    {[filename:join(Dir, File) || File <- Files], [filename:join(Dir, List) || List <- Lists]}.

is_other("." ++ _) -> true;
is_other("README" ++ _) -> true;
is_other(Name) -> lists:member(filename:extension(Name), [".md", ".html"]).

lists(Dir) ->
    [File
     || File <- filelib:wildcard(filename:join(escaped(Dir), "*.txt")),
        sderl_aco_known:is_list(File)].

%% The name of a folder is not a pattern.
escaped(Dir) ->
    lists:flatmap(fun(C) ->
        case lists:member(C, "*?[]{}\\") of true -> [$\\, C]; false -> [C] end
    end, Dir).

each(Files, Fun) -> each(Files, Fun, []).

each([File | Files], Fun, Done) ->
    maybe
        {ok, Content} ?= content(File),
        {ok, Result} ?= Fun(File, Content),
        each(Files, Fun, [Result | Done])
    end;
each([], _, Done) ->
    {ok, lists:reverse(Done)}.

content(File) ->
    maybe
        true ?= filelib:file_size(File) =< ?MOST_BYTES orelse too_large,
        {ok, Content} ?= file:read_file(File),
        {ok, Content}
    else
        {error, Reason} -> {error, {cannot_read, File, Reason}};
        Reason -> {error, {cannot_read, File, Reason}}
    end.

%% 2 comes before 10.
order(Name) ->
    [
        case sderl_aco_file:whole(Part, 9) of
            {ok, Number} -> {0, Number};
            error -> {1, Part}
        end
     || Part <- re:split(Name, "(\\d+)", [trim]), Part =/= <<>>
    ].

-doc """
An instance by the published recipe: durations uniform in 1 to 100, weights in 1 to 10, due dates in
P (1 - `tf` - `rdd` / 2) to P (1 - `tf` + `rdd` / 2), where P is the sum of the durations; `rdd` is
the relative range of due dates, `tf` the tardiness factor. The same seed gives the same instance.
Due dates are whole numbers and not below 0.

Source: OR-Library, `wt40` to `wt100`.
""".
-spec generate(#{n := pos_integer(), rdd := number(), tf := number(), seed := term()}) ->
    instance().
generate(#{n := N, rdd := Rdd, tf := Tf, seed := Seed}) ->
    Random0 = rand:seed_s(exsss, erlang:phash2({Seed, N, Rdd, Tf}, 1 bsl 32)),
    {P, Random1} = draw(N, 1, 100, Random0),
    {W, Random2} = draw(N, 1, 10, Random1),
    Sum = lists:sum(P),
    Least = max(0, round(Sum * (1 - Tf - Rdd / 2))),
    Greatest = max(Least, round(Sum * (1 - Tf + Rdd / 2))),
    {D, _} = draw(N, Least, Greatest, Random2),
    Name = iolist_to_binary(io_lib:format("generated ~w rdd ~w tf ~w seed ~0tp",
                                          [N, Rdd, Tf, Seed])),
    #{name => Name, n => N, p => list_to_tuple(P), w => list_to_tuple(W), d => list_to_tuple(D)}.

draw(N, Least, Greatest, Random) ->
    lists:mapfoldl(
        fun(_, R0) ->
            {U, R1} = rand:uniform_s(Greatest - Least + 1, R0),
            {Least + U - 1, R1}
        end,
        Random,
        lists:seq(1, N)
    ).

-doc """
The set of the published recipe: for each of 25 pairs of `rdd` and `tf` (0.2 to 1.0) so many
instances of `N` jobs.
""".
-spec standard(N :: pos_integer(), #{each := pos_integer(), seed := term()}) -> [instance()].
standard(N, #{each := Each, seed := Seed}) ->
    Parts = [0.2, 0.4, 0.6, 0.8, 1.0],
    [generate(#{n => N, rdd => Rdd, tf => Tf, seed => {Seed, K}})
     || Rdd <- Parts, Tf <- Parts, K <- lists:seq(1, Each)].

-doc "The cost of a schedule.".
-spec tardiness(instance(), [job()]) -> Cost :: non_neg_integer().
tardiness(#{p := P, w := W, d := D}, Jobs) -> tardiness(Jobs, 0, 0, P, W, D).

tardiness([], _, Cost, _, _, _) when is_integer(Cost), Cost >= 0 ->
    Cost;
tardiness([J | Jobs], T, Cost, P, W, D) ->
    Done = T + element(J, P),
    tardiness(Jobs, Done, Cost + element(J, W) * max(0, Done - element(J, D)), P, W, D).

-doc "The jobs by due date, those that are due at the same time by number.".
-spec edd(instance()) -> [job()].
edd(#{n := N, d := D}) -> [J || {_, J} <- lists:sort([{element(J, D), J} || J <- lists:seq(1, N)])].
