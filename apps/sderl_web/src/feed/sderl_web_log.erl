%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_log).
-moduledoc """
Pages of the nodes' log: events, newest first, with what is kept and what is left out.

A few searches at a time: each may read 32 MB.
""".

-export([answer/1, page/1]).
-export_type([page/0]).
-import(sderl_web_json, [null/1]).

%% A name for each place; it is free again when the process that has it ends, however it does.
-define(PLACES, [sderl_web_log_1, sderl_web_log_2, sderl_web_log_3, sderl_web_log_4]).

-doc "The page of a checked request; JSON already.".
-spec answer(sderl_mon_log_filter:options()) ->
    {ok, iodata()} | {error, sderl_web_protocol:code(), unicode:chardata()}.
answer(Options) ->
    maybe
        {ok, Page} ?= page(Options),
        {ok, sderl_web_json:term(Page)}
    end.

-doc "Events, newest first; `next` is the number before which there may be others.".
-type page() :: #{
    events := [sderl_mon_log_message:event()], next := null | pos_integer(), log := map()
}.

-doc "The page of a checked request.".
-spec page(sderl_mon_log_filter:options()) ->
    {ok, page()} | {error, sderl_web_protocol:code(), unicode:chardata()}.
page(Options) -> page(?PLACES, Options).

page([], _) ->
    {error, unavailable, "log: as many searches as may run at a time do so: ask again"};
page([Place | Places], Options) ->
    try register(Place, self()) of
        true ->
            try found(Options) after unregister(Place) end
    catch
        error:badarg -> page(Places, Options)
    end.

%% Whoever asks next for what is after `last` misses nothing: the search sees all up to there.
found(Options) ->
    Info = sderl_mon_log:info(),
    case sderl_mon_log:search(Options) of
        {ok, #{events := Events, next := Next}} ->
            {ok, #{events => Events, next => null(Next), log => about(Info)}};
        {error, Why} ->
            {error, bad_request, ["log: ", sderl_mon_log:format_error(Why)]}
    end.

about(#{events := Events, lost := Lost} = Info) ->
    #{place := Place, problem := Problem, range := Range, last := Last, bytes := Bytes} = Info,
    #{events => Events, place => Place, problem => null(Problem), range => null(Range),
      last => Last, bytes => Bytes,
      lost => [#{reason => Reason, level => Level, events => N}
               || {Reason, Level} := N <- maps:iterator(Lost, ordered)]}.
