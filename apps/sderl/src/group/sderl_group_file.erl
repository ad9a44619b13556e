%% SPDX-License-Identifier: Apache-2.0
-module(sderl_group_file).
-moduledoc """
What a group keeps on disk (`m:sderl_kept`), because it must survive this life of the node. It is
written before another process hears of it.

The writer waits for the disk, so this is done when the membership or the epoch changes and never
for an operation. A failed write is tried again with each tick.
""".

-export([new/3, keep/2, keep_again/2, left/3]).
-export_type([file/0]).

-record(file, {
    dir :: none | file:name_all(),
    group :: term(),
    uid :: binary(),
    configured :: boolean(),        % the launch configuration makes this group
    mode :: sderl_options:consistency(),
    answer :: sderl_options:answer(),
    %% The content of the file, or why it could not be written.
    kept :: undefined | {sderl_membership:t(), integer()},
    unkept :: undefined | term()
}).
-opaque file() :: #file{}.

-spec new(Group :: term(), Uid :: binary(), sderl_dir:start_args()) -> file().
new(Group, Uid, Args) ->
    #file{dir = dir(Group), group = Group, uid = Uid,
          configured = maps:get(configured, Args, false),
          mode = maps:get(mode, Args, available),
          answer = maps:get(answer, Args, committed)}.

%% An island of free nodes is not kept: its nodes meet again or do not. Nor are groups of a node
%% without a name.
dir(Group) when Group =:= undefined; node() =:= nonode@nohost -> none;
dir(_) -> sderl_options:value(state_dir).

-spec keep(sderl_core:state(), file()) -> file().
keep(_, #file{dir = none} = F) -> F;
keep(_, #file{unkept = Why} = F) when Why =/= undefined -> F;
keep(Core, #file{kept = Kept} = F) ->
    case {sderl_core:membership(Core), sderl_core:highest(Core)} of
        Kept -> F;
        {Mem, Epoch} = New -> kept(New, write(Mem, Epoch, no, F), F)
    end.

-doc "Once a tick.".
-spec keep_again(sderl_core:state(), file()) -> file().
keep_again(_, #file{unkept = undefined} = F) -> F;
keep_again(Core, F) ->
    {Mem, Epoch} = New = {sderl_core:membership(Core), sderl_core:highest(Core)},
    kept(New, write(Mem, Epoch, no, F), F).

-doc "This node left the group.".
-spec left({sderl_membership:t(), Epoch :: integer()}, Why :: term(), file()) -> ok.
left({Mem, Epoch}, Why, F) ->
    _ = write(Mem, Epoch, {Why, erlang:system_time(second)}, F),
    ok.

kept(New, ok, F) -> F#file{kept = New, unkept = undefined};
kept(_, {error, Why}, #file{unkept = Why} = F) -> F;
kept(_, {error, {File, Reason} = Why}, #file{group = Group} = F) ->
    sderl_event:emit(state_not_kept, #{group => Group, file => File, reason => Reason}),
    F#file{unkept = Why}.

write(_, _, _, #file{dir = none}) -> ok;
write(Mem, Epoch, Left, #file{dir = Dir, group = Group, uid = Uid} = F) ->
    #file{configured = Configured, mode = Mode, answer = Answer} = F,
    sderl_kept:write(Dir, #{node => node(), group => Group, uid => Uid, membership => Mem,
                            epoch => Epoch, configured => Configured, left => Left,
                            consistency => Mode, answer => Answer}).
