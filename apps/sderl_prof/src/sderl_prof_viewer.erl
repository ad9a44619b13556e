%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_viewer).
-moduledoc """
The processes that hold an open recording (`m:sderl_prof_view`), or samples
(`m:sderl_prof_samples`). Each answers one question at a time: one of them the quick questions, so
that the time line can move, the other one those that read the events of a part of the time.
""".

-behaviour(gen_server).

-export([start_link/2, start_samples/1, stop/0, open/1, open_samples/1, own/0, ask/2]).
-export([init/1, handle_call/3, handle_cast/2, terminate/2]).
-export_type([question/0, viewer/0]).

-define(ANSWER_MS, 60_000).
-define(PARTS, sderl_prof_viewer_parts).

-type question() :: about | findings | {window, map()} | {processes, map()} | {process, integer()}
    | {messages, map()} | {traffic, map()} | {communication, sderl_prof_pairs:request()}
    | {arrows, map()} | {stays, map()} | {calls, map()} | {path, map()} | {tree, map()}
    | {waits, map()} | {source, integer()} | {report, sderl_prof_leaders:request()}
    | {operations, map()} | {routed, map()}
    | {samples, sderl_prof_samples:request()}.
-type reason() :: sderl_prof_view:reason() | sderl_prof_samples:reason().
-type progress() :: fun((non_neg_integer(), pos_integer()) -> term()).

-doc "The process for quick questions, and the other one.".
-type viewer() :: {Quick :: pid() | atom(), Parts :: pid() | atom()}.

-record(viewer, {view :: sderl_prof_view:view(), parts :: pid() | none}).
%% Samples in place of a recording of events.
-record(samples, {samples :: sderl_prof_samples:samples()}).

-doc "Opens the book in this folder; `Progress` is called while what the pages need is made.".
-spec start_link(file:filename_all(), progress()) ->
    {ok, pid()} | {error, sderl_prof_view:reason()}.
start_link(Dir, Progress) ->
    case gen_server:start_link({local, ?MODULE}, ?MODULE, {Dir, Progress}, [{timeout, infinity}]) of
        {ok, Pid} -> {ok, Pid};
        {error, {cannot_open, Why}} -> {error, Why};
        {error, Why} -> {error, {defect, Why}}
    end.

-doc "Holds samples, in place of a recording of events.".
-spec start_samples(sderl_prof_samples:samples()) -> {ok, pid()}.
start_samples(Samples) ->
    {ok, _} = gen_server:start_link({local, ?MODULE}, ?MODULE, {samples, Samples}, []).

-doc "Closes it.".
-spec stop() -> ok.
stop() -> gen_server:stop(?MODULE).

-doc "Opens one beside others; it ends with the caller.".
-spec open(file:filename_all()) -> {ok, viewer()} | {error, sderl_prof_view:reason()}.
open(Dir) ->
    case gen_server:start_link(?MODULE, {beside, Dir}, [{timeout, infinity}]) of
        {ok, Pid} -> {ok, {Pid, gen_server:call(Pid, parts)}};
        {error, {cannot_open, Why}} -> {error, Why};
        {error, Why} -> {error, {defect, Why}}
    end.

-doc "Holds samples beside others; it ends with the caller.".
-spec open_samples(sderl_prof_samples:samples()) -> viewer().
open_samples(Samples) ->
    {ok, Pid} = gen_server:start_link(?MODULE, {samples, Samples}, []),
    {Pid, Pid}.

-doc "The one that this node has by name (`start_link/2`, `start_samples/1`).".
-spec own() -> viewer().
own() -> {?MODULE, ?PARTS}.

-doc "An answer of `m:sderl_prof_view`, or of `m:sderl_prof_samples` where samples are held.".
-spec ask(viewer(), question()) -> {ok, map()} | {error, reason()}.
ask({Quick, Parts}, Question) ->
    Asked = case is_quick(Question) of
        true -> Quick;
        false -> Parts
    end,
    gen_server:call(Asked, Question, ?ANSWER_MS).

is_quick({What, _})
  when What =:= arrows; What =:= stays; What =:= calls; What =:= path; What =:= tree;
       What =:= report; What =:= source; What =:= routed -> false;
is_quick({processes, #{from := _}}) -> false;
is_quick(_) -> true.

-doc false.
-spec init({file:filename_all(), progress()} | {beside | parts, file:filename_all()}
           | {samples, sderl_prof_samples:samples()}) ->
    {ok, #viewer{} | #samples{}} | {error, {cannot_open, sderl_prof_view:reason()}}.
init({samples, Samples}) ->
    {ok, #samples{samples = Samples}};
init({parts, Dir}) ->
    case sderl_prof_view:open(Dir, fun(_, _) -> ok end) of
        {ok, View} -> {ok, #viewer{view = sderl_prof_view:slim(View), parts = none}};
        {error, Why} -> {error, {cannot_open, Why}}
    end;
init({beside, Dir}) ->
    opened(Dir, fun(_, _) -> ok end, fun() -> gen_server:start_link(?MODULE, {parts, Dir}, []) end);
init({Dir, Progress}) ->
    opened(Dir, Progress, fun() ->
        gen_server:start_link({local, ?PARTS}, ?MODULE, {parts, Dir}, [])
    end).

opened(Dir, Progress, StartParts) ->
    maybe
        {ok, View} ?= sderl_prof_view:open(Dir, Progress),
        {ok, Parts} ?= StartParts(),
        {ok, #viewer{view = View, parts = Parts}}
    else
        {error, {cannot_open, _} = Why} -> {error, Why};
        {error, Why} -> {error, {cannot_open, Why}}
    end.

-doc false.
-spec handle_call(question() | parts, gen_server:from(), #viewer{} | #samples{}) ->
    {reply, pid() | none | {ok, map()} | {error, reason()}, #viewer{} | #samples{}}.
handle_call(parts, _, #viewer{parts = Parts} = Viewer) ->
    {reply, Parts, Viewer};
handle_call(about, _, #samples{samples = Samples} = Viewer) ->
    {reply, {ok, sderl_prof_samples:about(Samples)}, Viewer};
handle_call({samples, Request}, _, #samples{samples = Samples} = Viewer) ->
    {reply, sderl_prof_samples:answer(Request, Samples), Viewer};
handle_call(Question, _, #viewer{view = View} = Viewer) ->
    {reply, answer(Question, View), Viewer}.

answer(about, View) -> {ok, sderl_prof_view:about(View)};
answer(findings, View) -> {ok, sderl_prof_view:findings(View)};
answer({calls, Request}, View) -> sderl_prof_view:calls(Request, View);
answer({source, Function}, View) -> sderl_prof_view:source(Function, View);
answer({waits, Request}, View) -> sderl_prof_view:waits(Request, View);
answer({window, Request}, View) -> sderl_prof_view:window(Request, View);
answer({processes, Request}, View) -> sderl_prof_view:processes(Request, View);
answer({process, P}, View) -> sderl_prof_view:process(P, View);
answer({operations, Request}, View) -> sderl_prof_view:operations(Request, View);
answer({routed, Request}, View) -> sderl_prof_view:routed(Request, View);
answer({tree, Request}, View) -> {ok, sderl_prof_view:tree(Request, View)};
answer({messages, Request}, View) -> sderl_prof_view:messages(Request, View);
answer({traffic, Request}, View) -> sderl_prof_view:traffic(Request, View);
answer({communication, Request}, View) -> sderl_prof_view:communication(Request, View);
answer({report, Request}, View) -> {ok, sderl_prof_view:report(Request, View)};
answer({arrows, Request}, View) -> sderl_prof_view:arrows(Request, View);
answer({stays, Request}, View) -> sderl_prof_view:stays(Request, View);
answer({path, Request}, View) -> sderl_prof_view:path(Request, View).

-doc false.
-spec handle_cast(term(), #viewer{} | #samples{}) -> {noreply, #viewer{} | #samples{}}.
handle_cast(_, Viewer) -> {noreply, Viewer}.

-doc false.
-spec terminate(term(), #viewer{} | #samples{}) -> ok.
terminate(_, #samples{}) -> ok;
terminate(_, #viewer{view = View, parts = Parts}) ->
    _ = [gen_server:stop(Parts) || Parts =/= none],
    sderl_prof_view:close(View).
