%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_client).
-moduledoc false.
%% Calls of other modules to the process that has this node's attributes (`sderl_attr_server`):
%% the caller's side.

-export([write/1, keep/2, changed/1]).

-define(SERVER, sderl_attr_server).

-doc "Changes this node's attributes. The caller has computed the value of an automatic attribute.".
-spec write(sderl_attr_own:change()) ->
    ok | {error, {attr_exists | attr_not_set, sderl_attr:name()} | not_running}.
write(Change) -> write(Change, 3).

write(_, 0) -> {error, not_running};
write(Change, Tries) ->
    try gen_server:call(?SERVER, {write, Change}, infinity)
    catch
        exit:{Why, _} ->
            %% The server died, and the supervisor restarts it. All changes but an insertion may be
            %% made twice.
            case ets:whereis(sderl_attrs) =/= undefined andalso whereis(sderl_sup) =/= undefined of
                true when Why =:= noproc -> receive after 10 -> write(Change, Tries) end;
                true -> write(Change, Tries - 1);
                false -> {error, not_running}
            end
    end.

-doc """
Notes the answers to questions, and the nodes that did not answer and are not asked for a while;
returns when reads see it.
""".
-spec keep([sderl_attr_answers:answer()], [sderl_attr_answers:silent()]) -> ok.
keep(Answers, Silent) ->
    try gen_server:call(?SERVER, {keep, Answers, Silent}, 1000)
    catch exit:_ -> ok
    end.

-doc "An own group or its members changed.".
-spec changed(Group :: term()) -> ok.
changed(Group) -> gen_server:cast(?SERVER, {changed, Group}).
