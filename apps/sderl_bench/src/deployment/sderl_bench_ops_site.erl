%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_ops_site).
-moduledoc "Hosts and the operations service for a benchmark, and the cluster that they run.".

-export([with/4, apply_file/3, library/0]).
-export_type([site/0]).

-type site() :: #{
    folder := file:filename(),
    hosts := sderl_bench_ops_hosts:hosts(),
    service := sderl_bench_ops_service:service(),
    atom() => term()
}.

-doc """
Starts hosts and the service in a folder of their own, calls `Fun`, and ends and removes all of it.
An error that is text becomes a reason of `m:sderl_bench_reason`.
""".
-spec with(Name :: string(), Hosts :: pos_integer(), servers | loopback | folders,
           fun((site()) -> {ok, Result} | {error, term()})) ->
    {ok, Result} | {error, term()}.
with(Name, Count, Kind, Fun) ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"),
                           lists:concat(["sderl-", Name, "-", os:getpid(), "-",
                                         erlang:unique_integer([positive])])),
    ok = filelib:ensure_path(Folder),
    try
        said(begun(Folder, sderl_bench_ops_hosts:start(Folder, Count, Kind), Fun))
    after
        file:del_dir_r(Folder)
    end.

begun(_, {error, _} = Error, _) ->
    Error;
begun(Folder, {ok, Hosts}, Fun) ->
    try
        maybe
            {ok, Service} ?= sderl_bench_ops_service:start("s", Hosts),
            Fun(#{folder => Folder, hosts => Hosts, service => Service})
        end
    after
        sderl_bench_ops_hosts:stop(Hosts)
    end.

said({error, Text}) when is_list(Text); is_binary(Text) -> {error, {said, Text}};
said(Outcome) -> Outcome.

-doc """
Applies a cluster's file; seconds until all is as it says. With a label it shows progress.
""".
-spec apply_file(Cluster :: map(), Label :: [unicode:chardata()], site()) ->
    {ok, Seconds :: float()} | {error, unicode:chardata()}.
apply_file(Cluster, Label, #{folder := Folder, service := Service}) ->
    File = filename:join(Folder, "cluster.json"),
    ok = file:write_file(File, json:encode(Cluster)),
    Request = #{do => apply, file => unicode:characters_to_binary(File)},
    Start = erlang:monotonic_time(microsecond),
    case sderl_bench_ops_service:ask(Request, teller(Label), Service) of
        {ok, #{~"state" := ~"steady"}} ->
            {ok, (erlang:monotonic_time(microsecond) - Start) / 1.0e6};
        {ok, #{~"state" := State, ~"problems" := Problems}} ->
            {error, ["the deployment is ", State, ": ", lists:join("; ", Problems)]};
        {error, _} = Error ->
            Error
    end.

teller([]) -> fun(_) -> ok end;
teller([Label]) ->
    Bar = sderl_progress:reporter(Label),
    fun
        ({progress, Done, Total, _}) -> Bar(min(Done, Total), Total);
        (_) -> ok
    end.

-doc "The library's code, for a release.".
-spec library() -> binary().
library() ->
    Folder = filename:absname(filename:dirname(code:which(s_group))),
    <<_/binary>> = unicode:characters_to_binary(Folder).
