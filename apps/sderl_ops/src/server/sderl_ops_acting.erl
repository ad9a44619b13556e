%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_acting).
-moduledoc """
Asks the server that acts (`m:sderl_ops_server`): the one of this virtual machine, or of another
member of the service.

If no server acts at the moment, or it ends before it has answered, the next one is asked: a request
may be repeated. A request that cannot be answered throws `{unavailable, Sentence}`, or
`{unsure, Sentence}` if it may have been done all the same.
""".

-export([hello/0, current/0, applied/0, view/0, adopt/3]).
-export([pause/1, resume/1, set_aside/3, take_back/2, release/2, adopt_again/2]).
-export([write_down/2, watch/1, monitor/0]).

-import(sderl_clock, [now_ms/0]).

-define(SERVER, sderl_ops_server).
%% Longer than it takes until another member has taken over.
-define(PATIENCE_MS, 60_000).
-define(AGAIN_MS, 250).
-define(CALL_MS, 60_000).
-define(WRITE_DOWN_MS, 1_000).

-doc "The cluster and its newest revision.".
-spec hello() -> none | {Cluster :: binary(), Revision :: pos_integer()}.
hello() -> call(hello).

-doc """
The newest revision and its file, from which the next one can be made; and the families that were
rolled back from it.
""".
-spec current() -> none | {pos_integer(), sderl_ops_file:file(), [Family :: binary()]}.
current() -> call(current).

-doc "The newest revision, and the file that was applied last, where it is known.".
-spec applied() -> none | {pos_integer(), none | (Path :: binary())}.
applied() -> call(applied).

-doc "All that is needed to plan, or to tell how the cluster is.".
-spec view() -> sderl_ops_status:view().
view() -> call(view).

-doc """
Makes a new revision the desired state. `After` is the revision that the caller has seen: if there
is a newer one by now, somebody else was faster, and nothing is changed. `applied` is the path of
the file, if a file is applied; later revisions remember it.
""".
-spec adopt(sderl_ops_revision:prepared(), After :: non_neg_integer(),
            sderl_ops_revision:about()) ->
    {ok, Revision :: pos_integer()} | {error, unicode:chardata()}.
adopt(Prepared, After, About) ->
    %% If the member that acts is lost before it answers, the next one recognises the request.
    Request = binary:encode_hex(rand:bytes(16), lowercase),
    call({adopt, Prepared, After, About#{request => Request}}).

-doc "Begins no more steps until `resume/1`.".
-spec pause(By :: binary()) -> sderl_ops_server:state().
pause(By) -> call({remember, By, pause, fun sderl_ops_memory:pause/1}).

-doc "Goes on, and tries again what had been given up.".
-spec resume(By :: binary()) -> sderl_ops_server:state().
resume(By) -> call({remember, By, resume, fun sderl_ops_memory:resume/1}).

-doc """
Takes an instance out of service: it leaves its groups and is stopped. Without `Force` this is
refused if a group would lose its last member, or an edge its last gateway.
""".
-spec set_aside(By :: binary(), sderl_ops_desired:instance_id(), Force :: boolean()) ->
    ok | {refused, [sderl_ops_refusal:refusal(), ...]} | {error | unknown, unicode:chardata()}.
set_aside(By, Id, false) -> call({instance, By, Id, drain});
set_aside(By, Id, true) -> call({instance, By, Id, force_drain}).

-doc "Puts it into service again.".
-spec take_back(By :: binary(), sderl_ops_desired:instance_id()) ->
    ok | {error | unknown, unicode:chardata()}.
take_back(By, Id) -> call({instance, By, Id, undrain}).

-doc "Hands a node back that was taken over: it runs on, and nothing is done about it any more.".
-spec release(By :: binary(), sderl_ops_desired:instance_id()) ->
    ok | {error | unknown, unicode:chardata()}.
release(By, Id) -> call({instance, By, Id, release}).

-doc "Takes a node over again that was handed back.".
-spec adopt_again(By :: binary(), sderl_ops_desired:instance_id()) ->
    ok | {error | unknown, unicode:chardata()}.
adopt_again(By, Id) -> call({instance, By, Id, adopt}).

-doc """
Records a change of the service's own members in the record of its cluster. The change is made
already, so this waits for a short time only: if the member that acted was removed, no server acts
for longer.
""".
-spec write_down(By :: binary(), sderl_ops_entry:request()) -> ok.
write_down(By, What) ->
    {_, Monitor} = spawn_monitor(fun() ->
        try
            %% A call that members of an earlier version know, too. It changes nothing.
            _ = call({remember, By, What, fun sderl_ops_memory:restored/1}),
            ok
        catch
            throw:_ -> ok;
            exit:_ -> ok
        end
    end),
    receive
        {'DOWN', Monitor, process, _, _} -> ok
    after ?WRITE_DOWN_MS ->
        true = demonitor(Monitor, [flush]),
        ok
    end.

-doc "Sends `t:sderl_ops_watchers:event/0` to a process until that ends, first the state.".
-spec watch(pid()) -> ok.
watch(Pid) -> call({watch, Pid}).

-doc "Monitors the server that acts, wherever it is.".
-spec monitor() -> reference().
monitor() -> erlang:monitor(process, server()).

%% ---------------------------------------------------------------- asking

-spec call(sderl_ops_server:call()) -> term().
call(Request) ->
    Answer = case sderl_ops_membership:is_member() of
                 false -> gen_server:call(?SERVER, Request, ?CALL_MS);
                 true -> call(Request, false, now_ms() + ?PATIENCE_MS)
             end,
    case Answer of
        {full, Sentence} -> unavailable(Sentence, false);
        _ -> Answer
    end.

%% Asked: whether a server that did not answer may have got the request.
call(Request, Asked, Deadline) ->
    case sderl_ops_member:acting() of
        {ok, Node} ->
            try
                gen_server:call({?SERVER, Node}, Request, ?CALL_MS)
            catch
                exit:{noproc, _} ->
                    again(Request, Asked, Deadline, "no ops member acts");
                exit:_ ->
                    again(Request, true, Deadline,
                          "the ops member that acts ended while it was asked")
            end;
        {soon, Sentence} ->
            again(Request, Asked, Deadline, Sentence);
        {no, Sentence} ->
            unavailable(Sentence, Asked andalso changes(Request))
    end.

again(Request, Asked, Deadline, Sentence) ->
    case now_ms() < Deadline of
        true -> receive after ?AGAIN_MS -> call(Request, Asked, Deadline) end;
        false -> unavailable(Sentence, Asked andalso changes(Request))
    end.

%% A decision may have been stored before the answer was lost.
-spec unavailable(unicode:chardata(), boolean()) -> no_return().
unavailable(Sentence, false) -> throw({unavailable, Sentence});
unavailable(Sentence, true) ->
    throw({unsure, [Sentence, "; `history` and `status` tell whether it was done"]}).

changes(Request) ->
    is_tuple(Request) andalso lists:member(element(1, Request), [adopt, remember, instance]).

server() ->
    case sderl_ops_member:acting() of
        {ok, Node} when Node =/= node() -> {?SERVER, Node};
        _ -> ?SERVER
    end.
