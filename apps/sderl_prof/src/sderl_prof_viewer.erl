%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_viewer).
-moduledoc """
The process that holds an open recording (`m:sderl_prof_view`) and answers one question at a time.
""".

-behaviour(gen_server).

-export([start_link/2, stop/0, ask/1]).
-export([init/1, handle_call/3, handle_cast/2, terminate/2]).
-export_type([question/0]).

-define(ANSWER_MS, 60_000).

-type question() :: about | calls | {window, map()} | {processes, map()} | {process, integer()}
    | {messages, map()}.

-doc "Opens the book in this folder; `Progress` is called while what the pages need is made.".
-spec start_link(file:filename_all(), fun((non_neg_integer(), pos_integer()) -> term())) ->
    {ok, pid()} | {error, sderl_prof_view:reason()}.
start_link(Dir, Progress) ->
    case gen_server:start_link({local, ?MODULE}, ?MODULE, {Dir, Progress}, [{timeout, infinity}]) of
        {ok, Pid} -> {ok, Pid};
        {error, {cannot_open, Why}} -> {error, Why};
        {error, Why} -> {error, {defect, Why}}
    end.

-doc "Closes it.".
-spec stop() -> ok.
stop() -> gen_server:stop(?MODULE).

-doc "An answer of `m:sderl_prof_view`.".
-spec ask(question()) -> {ok, map()} | {error, sderl_prof_view:reason()}.
ask(Question) -> gen_server:call(?MODULE, Question, ?ANSWER_MS).

-doc false.
-spec init({file:filename_all(), fun((non_neg_integer(), pos_integer()) -> term())}) ->
    {ok, sderl_prof_view:view()} | {error, {cannot_open, sderl_prof_view:reason()}}.
init({Dir, Progress}) ->
    case sderl_prof_view:open(Dir, Progress) of
        {ok, View} -> {ok, View};
        {error, Why} -> {error, {cannot_open, Why}}
    end.

-doc false.
-spec handle_call(question(), gen_server:from(), sderl_prof_view:view()) ->
    {reply, {ok, map()} | {error, sderl_prof_view:reason()}, sderl_prof_view:view()}.
handle_call(Question, _, View) -> {reply, answer(Question, View), View}.

answer(about, View) -> {ok, sderl_prof_view:about(View)};
answer(calls, View) -> {ok, sderl_prof_view:calls(View)};
answer({window, Request}, View) -> sderl_prof_view:window(Request, View);
answer({processes, Request}, View) -> {ok, sderl_prof_view:processes(Request, View)};
answer({process, P}, View) -> sderl_prof_view:process(P, View);
answer({messages, Request}, View) -> sderl_prof_view:messages(Request, View).

-doc false.
-spec handle_cast(term(), sderl_prof_view:view()) -> {noreply, sderl_prof_view:view()}.
handle_cast(_, View) -> {noreply, View}.

-doc false.
-spec terminate(term(), sderl_prof_view:view()) -> ok.
terminate(_, View) -> sderl_prof_view:close(View).
