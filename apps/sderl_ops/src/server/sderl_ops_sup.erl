%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_sup).
-moduledoc false.
%% The door (the socket) is open only while the server, or the member, runs.

-behaviour(supervisor).

-export([start_link/3]).
-export([init/1]).

-define(END_MS, 15_000).

-type dismiss() :: fun((unicode:chardata()) -> ok).

-spec start_link(Folder :: file:filename(), alone | sderl_ops_raft:mark(), dismiss()) ->
    supervisor:startlink_ret().
start_link(Folder, Mark, Dismiss) ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, {Folder, Mark, Dismiss}).

-spec init({file:filename(), alone | sderl_ops_raft:mark(), dismiss()}) ->
    {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({Folder, Mark, Dismiss}) ->
    {ok, {#{strategy => rest_for_one, intensity => 10, period => 60}, [
        behind(Folder, Mark, Dismiss),
        #{id => sderl_ops_door, start => {sderl_ops_door, start_link, [Folder]}}
    ]}}.

behind(Folder, alone, _) ->
    #{id => sderl_ops_server, start => {sderl_ops_server, start_link, [Folder, none]}};
%% Each of several members has a door; the server is there while the member acts.
behind(Folder, Mark, Dismiss) ->
    Options = #{folder => Folder, mark => Mark, dismiss => Dismiss,
                act => fun(Epoch) -> sderl_ops_server:start_link(Folder, Epoch) end},
    %% At its end it gives the lease back, which a majority has to accept.
    #{id => sderl_ops_member, start => {sderl_ops_member, start_link, [Options]},
      shutdown => ?END_MS}.
