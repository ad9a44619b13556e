%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_measure).
-moduledoc false.
%% The asking node: begins a survey, gathers the reports within the time limit, and makes a tree of
%% them.

-export([run/2, model/2]).

-import(sderl_clock, [now_ms/0]).

%% The process that gathers answers with its exit reason.
-dialyzer({nowarn_function, [run/2]}).

-spec run(sderl_dist:scope(), sderl_dist:measuring()) ->
    {ok, sderl_dist:measurement()} | {error, not_running}.
run(Scope, Options) ->
    Started = now_ms(),
    %% In a helper process, with which late reports end.
    {Pid, Ref} = spawn_monitor(fun() -> exit({gathered, gather(Scope, Options)}) end),
    receive
        {'DOWN', Ref, process, Pid, {gathered, {ok, Reports}}} ->
            Model = model(Reports, Options),
            Missing = case Scope of
                {groups, Names} -> Names -- sderl_dist_reports:names(Reports);
                _ -> []
            end,
            {ok, Model#{
                unreached => Missing,
                cost => sderl_dist_reports:cost(Reports),
                took_ms => now_ms() - Started
            }};
        {'DOWN', Ref, process, Pid, {gathered, Error}} -> Error;
        {'DOWN', Ref, process, Pid, Why} -> exit(Why)
    end.

gather(Scope, #{timeout_ms := Timeout} = Options) ->
    Until = now_ms() + Timeout,
    Spec = maps:with([peers, batches, batch, window, spread_ms], Options),
    Groups = case Scope of
        {groups, Names} -> Names;
        _ -> Scope
    end,
    case whereis(sderl_dist_probe) of
        undefined -> {error, not_running};
        Server ->
            Ref = monitor(process, Server),
            Id = make_ref(),
            %% A little time is left for the way back.
            ok = sderl_dist_survey:request(node(), Id, self(), Spec#{
                groups => Groups, asked => [], left_ms => max(1, Timeout * 9 div 10)
            }),
            Answer = collect(Id, Ref, Until, sderl_dist_reports:new(node())),
            Server ! {sderl_dist, 1, done, Id},
            Answer
    end.

collect(Id, Ref, Until, Reports) ->
    case sderl_dist_reports:complete(Reports) of
        true -> {ok, Reports};
        false ->
            receive
                {sderl_dist, 1, report, Id, Report} ->
                    case sderl_dist_reports:add(Report, Reports) of
                        unknown ->
                            ok = sderl_refused:note_message(sderl_dist_probe),
                            collect(Id, Ref, Until, Reports);
                        More -> collect(Id, Ref, Until, More)
                    end;
                {'DOWN', Ref, process, _, _} ->
                    {error, not_running}
            after max(0, Until - now_ms()) -> {ok, Reports}
            end
    end.

-doc "From reports to a measurement, without `unreached`, `cost` and `took_ms`.".
-spec model(sderl_dist_reports:t(), sderl_dist:measuring()) -> map().
model(Reports, #{gap := Gap, resolution_us := Resolution}) ->
    {Matrix, Kinds, Unconnected} =
        sderl_dist_matrix:complete(sderl_dist_reports:legs(Reports),
                                   sderl_dist_reports:groups(Reports), node()),
    Dendrogram = sderl_dist_cluster:dendrogram(Matrix),
    Levels = sderl_dist_cluster:levels(Dendrogram, Gap, Resolution * 1000),
    Meetings = sderl_dist_cluster:pairs(Dendrogram),
    Measured = fun(A, B) -> map_get(B, map_get(A, Matrix)) end,
    Rows = levels(Levels, [{Measured(A, B), Height} || {A, B, Height} <- Meetings]),
    Name = fun(Level) -> milliseconds(maps:get(rtt_us, lists:nth(Level, Rows))) end,
    Missing = sderl_dist_reports:missing(Reports),
    Silent = [{Node, no_round_trip} || Node <- Unconnected, not lists:keymember(Node, 1, Missing)],
    Kept = #{Node => true || Node := _ <- Matrix},
    #{
        tree => sderl_dist_cluster:tree(Dendrogram, Levels, Name),
        nodes => lists:sort(maps:keys(Matrix)),
        %% A node that sent no report but answered others' probes is in the tree.
        missing => lists:sort([M || {Node, _} = M <- Missing, not is_map_key(Node, Kept)] ++
                              Silent),
        levels => Rows,
        fit => sderl_dist_fit:fit([{Measured(A, B), modelled(Height, Levels, Rows)}
                                   || {A, B, Height} <- Meetings]),
        dendrogram_fit => sderl_dist_fit:fit([{Measured(A, B), Height}
                                              || {A, B, Height} <- Meetings]),
        pairs => Kinds,
        rtt_us => #{Node => #{Other => Ns / 1000 || Other := Ns <- Row} || Node := Row <- Matrix}
    }.

%% A level is represented by the median of its pairs.
levels(Levels, Pairs) ->
    Count = length(Levels),
    [begin
        Times = [Ns || {Ns, Height} <- Pairs, Height >= Least, Height =< Most],
        #{
            distance => math:pow(0.5, Count - Number),
            pairs => length(Times),
            rtt_us => sderl_dist_fit:median(Times) / 1000,
            least_us => lists:min(Times) / 1000,
            most_us => lists:max(Times) / 1000
        }
    end || {Number, {Least, Most}} <- lists:enumerate(Levels)].

modelled(Height, [{_, Most} | _], [#{rtt_us := Us} | _]) when Height =< Most -> Us * 1000;
modelled(Height, [_ | Levels], [_ | Rows]) -> modelled(Height, Levels, Rows).

%% With two significant digits.
milliseconds(Us) ->
    Decimals = if Us < 100 -> 3; Us < 1000 -> 2; Us < 10_000 -> 1; true -> 0 end,
    float_to_list(Us / 1000, [{decimals, Decimals}]) ++ " ms".
