%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_exec).
-moduledoc """
Hosts that a program of the user makes and deletes (`m:sderl_ops_exec_lines` has the requests); they
are reached over ssh. The program runs once for each request, in a folder of its own. Its
environment has the variables of the file, and otherwise only `HOME`, `PATH` and the like.
""".

-behaviour(sderl_ops_provider).
-behaviour(sderl_ops_transport).

-export([hosts/2, ask/3, host/4]).
-export([run/5]).

-define(KEPT, ["HOME", "PATH", "LANG", "USER", "LOGNAME", "TZ", "TMPDIR"]).

-doc "None: the program makes them later.".
-spec hosts(sderl_ops_provider:config(), sderl_ops_provider:context()) -> {ok, []}.
hosts(_, _) -> {ok, []}.

-doc "What the program answers. An error is a sentence.".
-spec ask(sderl_ops_provider:config(), sderl_ops_provider:context(),
          sderl_ops_exec_lines:request()) ->
    {ok, [sderl_ops_exec_lines:told()]} | {error, unicode:chardata()}.
ask(#{program := Program, arguments := Arguments, timeout_s := Seconds} = Config,
    #{cluster := Cluster, names := Names} = Context, #{do := Do} = Request) ->
    Id = binary:encode_hex(crypto:strong_rand_bytes(8), lowercase),
    Line = sderl_ops_exec_lines:request(Id, Cluster, Request),
    Answer = maybe
        {ok, Env} ?= environment(Config),
        {ok, Folder} ?= folder(Context),
        case sderl_ops_port:run([Program | Arguments], {bytes, Line}, Seconds * 1000,
                                [{cd, Folder}, {env, Env()}]) of
            {ok, 127, _} ->
                {error, "it, or a program that it needs, cannot be found"};
            {ok, 126, _} ->
                {error, "it may not be run: chmod +x"};
            {ok, _, _} = Ended ->
                sderl_ops_exec_lines:answer(Request, Id, Names, Ended);
            {error, timeout, _} ->
                {error, io_lib:format("it did not end within ~b s and was killed (timeout_s)",
                                      [Seconds])};
            {error, killed, _} ->
                {error, "it was killed"}
        end
    end,
    case Answer of
        {ok, _} -> Answer;
        {error, Why} -> {error, [Program, ", asked to ", atom_to_list(Do), on(Request), ": ", Why]}
    end.

on(#{host := Host}) -> [" ", Host];
on(_) -> " its hosts".

%% The service's other variables are removed. Wrapped in a function, because it contains secrets.
environment(#{env := Env}) ->
    Texts = #{Name => text(Text) || Name := Text <- Env},
    case [["env.", Name, ": ", Why] || Name := {error, Why} <- maps:iterator(Texts, ordered)] of
        [] ->
            {ok, fun() ->
                Own = [Name || {Name, _} <- os:env(), not lists:member(Name, ?KEPT)],
                [{Name, false} || Name <- Own, not is_map_key(list_to_binary(Name), Env)]
                    ++ [{binary_to_list(Name), unicode:characters_to_list(Text())}
                        || Name := {ok, Text} <- Texts]
            end};
        [Why | _] ->
            {error, Why}
    end.

text(Text) when is_binary(Text) -> {ok, fun() -> Text end};
text(Secret) -> sderl_ops_secret:resolve(Secret).

folder(#{folder := Service, provider := Provider}) ->
    Folder = filename:join([filename:absname(Service), "providers", Provider]),
    maybe
        ok ?= filelib:ensure_path(Folder),
        {ok, Folder}
    else
        {error, Why} -> {error, [Folder, " cannot be made: ", file:format_error(Why)]}
    end.

%% ---------------------------------------------------------------- its hosts

-doc "A host that the program told of.".
-spec host(sderl_ops_provider:config(), sderl_ops_provider:context(), Id :: binary(),
           sderl_ops_exec_lines:told()) -> sderl_ops_host:host().
host(Config, #{cluster := Cluster, folder := Folder}, Id,
     #{state := running, address := Address} = Told) ->
    Common = (maps:with([user, key, known_hosts], Config))#{folder => filename:join(Folder, "ssh")},
    Settings = maps:merge(Common, maps:with([address, port, user, host_key], Told)),
    #{id => Id, address => Address, cluster => Cluster,
      connection => {sderl_ops_openssh, Settings}};
host(_, #{cluster := Cluster}, Id, _) ->
    #{id => Id, address => ~"unknown.invalid", cluster => Cluster, connection => {?MODULE, #{}}}.

-doc "A host that has no address yet cannot be reached.".
-spec run(map(), binary(), [binary()], sderl_ops_port:input(), pos_integer()) ->
    sderl_ops_transport:answer().
run(_, _, _, _, _) -> {error, {unreachable, ~"its provider says that it is still being made"}}.
