%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_slow_resource).
-moduledoc "A path that answers when the process registered under this module's name says so.".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3]).

routes() ->
    [#{op => slow, method => post, path => [~"slow"], role => operator,
       summary => ~"Waits until it is told to go on", creates => true,
       answer => {201, sderl_web_schema:object(#{done => sderl_web_schema:flag()})}}].

schemas() -> #{}.

answer(slow, _, _) ->
    ?MODULE ! {begun, self()},
    receive go -> {ok, #{done => true}} end.
