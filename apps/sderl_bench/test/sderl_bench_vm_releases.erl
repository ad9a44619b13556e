%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_releases).
-moduledoc "Makes releases that are as small as possible, without a build tool.".

-export([make/2]).

-doc """
A release with one application that is started, `sderl_tiny`, with this environment in its
configuration, and one that is only loaded, `sderl_more`. If the environment has `refuse`,
`sderl_tiny` does not start. `sderl_tiny:answer(X)` returns X and the environment's `answer`, and
fails unless `sderl_tiny` runs and `sderl_more` is loaded. `sderl_tiny:leave(X)` ends the
application. Beside the `.rel` file of the release there are two others, as rebar3 writes them.
""".
-spec make(file:filename(), [{atom(), term()}]) -> ok.
make(Dir, Env) ->
    Ebin = filename:join([Dir, "lib", "sderl_tiny-1.0", "ebin"]),
    ok = filelib:ensure_path(Ebin),
    {ok, sderl_tiny, Beam} = compile:forms(forms(
        """
        -module(sderl_tiny).
        -behaviour(application).
        -export([start/2, stop/1, answer/1, leave/1]).
        start(_, _) ->
            case application:get_env(sderl_tiny, refuse) of
                {ok, Why} -> {error, Why};
                undefined ->
                    Pid = spawn_link(fun() -> receive stop -> ok end end),
                    true = register(sderl_tiny, Pid),
                    {ok, Pid}
            end.
        stop(_) -> ok.
        answer(X) ->
            true = is_pid(whereis(sderl_tiny)),
            {ok, "1.0"} = application:get_key(sderl_more, vsn),
            {ok, Answer} = application:get_env(sderl_tiny, answer),
            {X, Answer}.
        leave(X) ->
            case whereis(sderl_tiny) of
                undefined -> X;
                Pid -> exit(Pid, kill), X
            end.
        """)),
    ok = file:write_file(filename:join(Ebin, "sderl_tiny.beam"), Beam),
    ok = write(filename:join(Ebin, "sderl_tiny.app"), {application, sderl_tiny, [
        {vsn, "1.0"}, {modules, [sderl_tiny]}, {registered, [sderl_tiny]},
        {applications, [kernel, stdlib]}, {mod, {sderl_tiny, []}}
    ]}),
    More = filename:join([Dir, "lib", "sderl_more-1.0", "ebin"]),
    ok = filelib:ensure_path(More),
    ok = write(filename:join(More, "sderl_more.app"), {application, sderl_more, [
        {vsn, "1.0"}, {modules, []}, {registered, []}, {applications, [kernel, stdlib]}
    ]}),
    Of = filename:join([Dir, "releases", "1.0"]),
    ok = filelib:ensure_path(Of),
    ok = file:write_file(filename:join([Dir, "releases", "start_erl.data"]), "17.1 1.0\n"),
    Rel = fun(File, Name, Apps) ->
        ok = write(filename:join(Of, File), {release, {Name, "1.0"}, {erts, "17.1"}, [
            {kernel, "10.0"}, {stdlib, "7.0"}, {sasl, "4.0", none} | Apps
        ]})
    end,
    ok = Rel("tiny.rel", "tiny", [{sderl_more, "1.0", load}, {sderl_tiny, "1.0"}]),
    ok = Rel("no_dot_erlang.rel", "tiny", [{sderl_more, "1.0", none}, {sderl_tiny, "1.0", none}]),
    ok = Rel("start_clean.rel", "start_clean", []),
    write(filename:join(Of, "sys.config"), [{sderl_tiny, Env}]).

write(File, Term) -> file:write_file(File, io_lib:format("~tp.~n", [Term])).

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    parsed(Tokens, []).

parsed([], Forms) -> lists:reverse(Forms);
parsed(Tokens, Forms) ->
    {Form, [Dot | Rest]} = lists:splitwith(fun(Token) -> element(1, Token) =/= dot end, Tokens),
    {ok, Parsed} = erl_parse:parse_form(Form ++ [Dot]),
    parsed(Rest, [Parsed | Forms]).
