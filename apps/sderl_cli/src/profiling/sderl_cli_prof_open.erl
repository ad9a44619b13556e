%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_open).
-moduledoc "`bin/sderl prof open`: the dashboard's server with a recording in place of a cluster.".

-export([check/1, start/3, serve/3]).

-doc "The options as the environment of `sderl_web`.".
-spec check(#{atom() => term()}) -> {ok, map()} | {wrong, sderl_command:text()}.
check(Parsed) ->
    case sderl_web_start:check(maps:remove(file, Parsed)) of
        {ok, Web} -> {ok, Web};
        {error, Message} -> {wrong, Message}
    end.

-doc "What is shown: the book in a folder, or the reports of samples.".
-type shown() :: file:filename_all() | {samples, [map(), ...]}.

-doc "Serves it until Ctrl-C.".
-spec serve(File :: string(), shown(), map()) -> ok | {error, sderl_command:text()}.
serve(File, What, Web) ->
    maybe
        {ok, Link} ?= start(File, What, Web),
        io:put_chars(sderl_visible:text(["\nThe profile:  ", Link, "\n", sderl_web_start:pages()])),
        Ended = sderl_cli_watch:until_stopped(),
        _ = sderl_prof_viewer:stop(),
        Ended
    end.

-doc "Starts the server; gives the address.".
-spec start(File :: string(), shown(), map()) ->
    {ok, Link :: binary()} | {error, sderl_command:text()}.
start(File, What, Web) ->
    maybe
        ok ?= viewer(What),
        ok ?= sderl_cli_watch:start(#{source => none, config => #{}}),
        ok = without_state(),
        Name = unicode:characters_to_binary(filename:basename(File)),
        ok ?= sderl_web_start:start(maps:merge(Web#{cluster => Name}, pages(What))),
        {ok, #{link := Link}} = sderl_web:address(),
        {ok, to_page(What, Link)}
    end.

pages({samples, _}) -> #{profile => samples, resources => [sderl_cli_prof_samples_resource]};
pages(_) -> #{profile => true, resources => [sderl_cli_prof_resource]}.

%% With the page in the link, a browser does not load another one first.
to_page({samples, _}, Link) -> page(~"#/samples?token=", Link);
to_page(_, Link) -> page(~"#/profile?token=", Link).

page(To, Link) -> iolist_to_binary(string:replace(Link, ~"#token=", To)).

viewer({samples, Reports}) ->
    case sderl_prof_samples:decode(Reports) of
        {ok, Samples} ->
            {ok, _} = sderl_prof_viewer:start_samples(Samples),
            ok;
        {error, Why} -> {error, sderl_prof_samples:format_error(Why)}
    end;
viewer(Dir) ->
    Opened = sderl_prof_viewer:start_link(Dir, sderl_progress:reporter("analysing")),
    ok = sderl_progress:done(),
    case Opened of
        {ok, _} -> ok;
        {error, Why} -> {error, sderl_prof_view:format_error(Why)}
    end.

%% Alarms and the audit log of a recording are not kept.
without_state() ->
    _ = [application:load(App) || App <- [sderl_alarms, sderl_actions]],
    application:set_env([{sderl_alarms, [{rules_file, undefined}, {state_dir, undefined}]},
                         {sderl_actions, [{state_dir, undefined}, {allow_expressions, false},
                                          {plugins, []}]}]).
