%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_metrics).
-moduledoc """
All metrics of nodes by name: those of the monitoring (`m:sderl_mon_catalogue`) and those of the
application that the configuration in force names (`m:sderl_mon_app_metrics`).
""".

-export([all/0, find/1, is_rate/1, application/0, read/1]).
-export_type([metric/0]).

-import(sderl_mon_text, [text/2]).

-doc """
`key` is the metric's key in a node's numbers: an atom, or the name of a metric or of a series of
the application's own. `for` are tags by which views choose.
""".
-type metric() :: #{
    name := binary(),
    key := atom() | sderl_mon_app_metrics:series(),
    unit := binary(),
    total := sderl_mon_app_metrics:total(),
    about := binary(),
    for := [binary()],
    kind := number | counter | sum | last | gauge
}.

-doc "All metrics, those of the monitoring first.".
-spec all() -> [metric(), ...].
all() ->
    [number(Metric) || Metric <- sderl_mon_catalogue:of_nodes()] ++
        [own(Metric) || Metric <- application()].

number(#{name := Name} = Metric) ->
    (maps:with([unit, total, about, for], Metric))#{name => atom_to_binary(Name), key => Name,
                                                    kind => number}.

own(#{name := Name} = Metric) ->
    %% A monitoring node of a version without tags may have set this metric.
    (maps:with([total, about, kind], Metric))#{name => Name, key => Name,
                                               for => maps:get(for, Metric, []),
                                               unit => sderl_mon_app_metrics:unit(Metric)}.

-doc "The metrics of the application that are configured.".
-spec application() -> [sderl_mon_app_metrics:metric()].
application() -> maps:get(metrics, sderl_mon_settings:get()).

-doc """
The metrics of a file: one list, with a full stop behind it. Errors are sentences.
""".
-spec read(file:name_all()) -> {ok, [sderl_mon_app_metrics:metric()]} | {error, binary()}.
read(File) ->
    case file:consult(File) of
        {ok, [List]} ->
            case sderl_mon_app_metrics:check(List) of
                {ok, Metrics} -> {ok, Metrics};
                {error, Error} ->
                    {error, text("~ts: ~ts", [File, sderl_mon_app_metrics:format_error(Error)])}
            end;
        {ok, Terms} ->
            {error, text("~ts holds ~b terms; write one list of metrics, and a full stop behind it",
                         [File, length(Terms)])};
        {error, Why} -> {error, text("~ts: ~ts", [File, file:format_error(Why)])}
    end.

-doc "The metric of a name; of the name of a series, that series.".
-spec find(binary()) -> {ok, metric()} | error.
find(Name) ->
    case sderl_mon_catalogue:find(Name) of
        {ok, Metric} -> {ok, number(Metric)};
        error ->
            Whole = sderl_mon_app_metrics:name(Name),
            case [Metric || #{name := Is} = Metric <- application(), Is =:= Whole] of
                [Metric] when Name =:= Whole -> {ok, own(Metric)};
                [Metric] -> series(Name, Metric);
                [] -> error
            end
    end.

-doc """
Whether a metric counts events of the application, so that a node which lacks it has counted nothing
yet. The monitoring's own rates are unknown where a node lacks them.
""".
-spec is_rate(atom() | sderl_mon_app_metrics:series()) -> boolean().
is_rate(Key) when is_atom(Key) -> false;
is_rate(Key) ->
    case find(Key) of
        {ok, #{kind := Kind}} -> Kind =:= counter orelse Kind =:= sum;
        error -> false
    end.

%% A series has exactly the tags of its metric, in that order.
series(Name, #{tags := Tags} = Metric) ->
    {_, Given} = sderl_mon_app_metrics:split(Name),
    case sderl_mon_app_metrics:is_series(Name)
         andalso [Tag || {Tag, _} <- Given] =:= [atom_to_binary(Tag) || Tag <- Tags] of
        true -> {ok, (own(Metric))#{name := Name, key := Name}};
        false -> error
    end.
