%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_stream).
-moduledoc """
Every answer carries the headers of `m:sderl_web_guard`: also those of the HTTP server itself, to
requests that it cannot read, or whose handling failed, and that no handler of ours sees.
""".

-behaviour(cowboy_stream).

-export([init/3, data/4, info/3, terminate/3, early_error/5]).

-type commands() :: cowboy_stream:commands().
-type next() :: {module(), term()} | undefined.

-doc false.
-spec init(cowboy_stream:streamid(), cowboy_req:req(), cowboy:opts()) -> {commands(), next()}.
init(Id, Req, Options) -> secured(cowboy_stream:init(Id, Req, Options)).

-doc false.
-spec data(cowboy_stream:streamid(), cowboy_stream:fin(), binary(), next()) ->
    {commands(), next()}.
data(Id, IsFin, Data, Next) -> secured(cowboy_stream:data(Id, IsFin, Data, Next)).

-doc false.
-spec info(cowboy_stream:streamid(), term(), next()) -> {commands(), next()}.
info(Id, Info, Next) -> secured(cowboy_stream:info(Id, Info, Next)).

-doc false.
-spec terminate(cowboy_stream:streamid(), cowboy_stream:reason(), next()) -> term().
terminate(Id, Reason, Next) -> cowboy_stream:terminate(Id, Reason, Next).

-doc false.
-spec early_error(Id, cowboy_stream:reason(), cowboy_stream:partial_req(), Answer, Options) ->
    Answer
when
    Id :: cowboy_stream:streamid(),
    Answer :: cowboy_stream:resp_command(),
    Options :: cowboy:opts().
early_error(Id, Reason, Req, Answer, Options) ->
    {response, Status, Headers, Body} =
        cowboy_stream:early_error(Id, Reason, Req, Answer, Options),
    {response, Status, with_ours(Headers), Body}.

secured({Commands, Next}) -> {[secure(Command) || Command <- Commands], Next}.

%% What a handler of ours answers has them, with its own of the page.
secure({Answer, Status, Headers, Body}) when Answer =:= response; Answer =:= error_response ->
    {Answer, Status, with_ours(Headers), Body};
secure({headers, Status, Headers}) ->
    {headers, Status, with_ours(Headers)};
secure(Command) ->
    Command.

with_ours(Headers) -> maps:merge(sderl_web_guard:headers(<<>>), Headers).
