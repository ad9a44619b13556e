%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_mortal).
-moduledoc """
Runs on a client node: starts a client that nothing is linked to, so that it can be killed.
""".

-export([start/2]).

-spec start(sderl_im_layout:conf(), term()) -> {ok, pid()}.
start(Conf, Name) ->
    {ok, Pid} = sderl_im_client:start_link(Conf, Name, sderl_im_tally:new(1, 1)),
    true = unlink(Pid),
    {ok, Pid}.
