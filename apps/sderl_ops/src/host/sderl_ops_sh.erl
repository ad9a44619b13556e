%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_sh).
-moduledoc "Reaches a folder of this machine that acts as a host.".

-behaviour(sderl_ops_transport).

-export([run/5, give/5, script/0]).

-doc "`base` is the host's folder.".
-spec run(#{base := file:filename_all()}, binary(), [binary()], sderl_ops_port:input(),
          pos_integer()) ->
    sderl_ops_transport:answer().
run(#{base := Base}, Cluster, Arguments, Input, Limit) ->
    Command = ["/bin/sh", script(), filename:absname(Base), Cluster | Arguments],
    ok = sderl_ops_sent:count_call(Input, Arguments),
    case sderl_ops_port:run(Command, Input, Limit) of
        {ok, Status, Output} -> {ok, Status, Output};
        {error, timeout, Output} -> {error, {timeout, Limit, Output}};
        {error, killed, Output} -> {error, {cut_off, Output}}
    end.

-doc "Has one folder give a release to another.".
-spec give(map(), map(), binary(), [binary()], pos_integer()) ->
    sderl_ops_transport:answer().
give(Giver, #{base := To}, Cluster, Arguments, Limit) ->
    Folder = unicode:characters_to_binary(filename:absname(To)),
    run(Giver, Cluster, Arguments ++ [Folder], none, Limit).

-doc "The file of the host script.".
-spec script() -> file:filename_all().
script() ->
    Beams = filename:dirname(code:which(?MODULE)),
    filename:join([filename:dirname(Beams), "priv", "host.sh"]).
