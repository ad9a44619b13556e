%% SPDX-License-Identifier: Apache-2.0
-module(sderl_kernel_env).
-moduledoc false.
%% The key `s_groups` in the environment of `kernel`. At launch it is configuration. While the
%% library runs it is what the published module makes of it: the groups of this node, the one that
%% was entered last first, then the others that the configuration names; unset on a node in no
%% group.
%%
%% The two are kept apart. Another key has the value at launch and marks of what was written here,
%% so a later start of the application takes its configuration from the value at launch. A value
%% that something else wrote since, by hand or in an upgrade of the release, is configuration again.
%% A mark is a hash: with thousands of groups a value has a hundred thousand words, and would be
%% copied several times for each write.
%%
%% A separate process writes, because the application controller, which has the environments,
%% answers nobody while it stops an application, and that application may be waiting for our node
%% process.

-behaviour(gen_server).
-behaviour(sderl_part).

-export([start_link/0, changed/0, at_launch/0]).
-export([handle_group_changed/1, handle_group_left/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-import(sderl_clock, [now_ms/0]).

-define(KEY, s_groups).
-define(BESIDE, sderl_s_groups_at_launch).
%% Changes that come together are written once. With many groups a write takes long; between two
%% writes there are so many times as long.
-define(TOGETHER, 20).
-define(REST, 100).

-doc "The value that the key has, or `undefined`.".
-type value() :: {ok, term()} | undefined.

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "The groups of this node changed.".
-spec changed() -> ok.
changed() -> gen_server:cast(?MODULE, changed).

-doc "The members of an own group changed.".
-spec handle_group_changed(term()) -> ok.
handle_group_changed(_) -> changed().

-doc "This node left a group that it shared with these nodes.".
-spec handle_group_left(term(), [node()]) -> ok.
handle_group_left(_, _) -> changed().

-doc "The launch configuration in the environment of `kernel`, whatever was written there since.".
-spec at_launch() -> value().
at_launch() -> at_launch(application:get_env(kernel, ?KEY)).

at_launch(Now) ->
    case application:get_env(kernel, ?BESIDE) of
        {ok, {Launch, Written}} ->
            case lists:member(mark(Now), Written) of
                true -> Launch;
                false -> Now
            end;
        undefined -> Now
    end.

mark({ok, Value}) -> {ok, erlang:phash2(Value, 1 bsl 32)};
mark(undefined) -> undefined.

-type state() :: {idle | waiting, NotBefore :: integer()}.

-spec init([]) -> {ok, state()}.
init([]) ->
    changed(),
    {ok, {idle, now_ms()}}.

-spec handle_call(term(), gen_server:from(), state()) -> {reply, {error, unknown_call}, state()}.
handle_call(_, _, State) -> {reply, {error, unknown_call}, State}.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(changed, {idle, NotBefore}) ->
    _ = erlang:send_after(max(?TOGETHER, NotBefore - now_ms()), self(), write),
    {noreply, {waiting, NotBefore}};
handle_cast(_, State) -> {noreply, State}.

-spec handle_info(term(), state()) -> {noreply, state()} | {noreply, state(), hibernate}.
handle_info(write, {waiting, _}) ->
    Began = now_ms(),
    write(application:get_env(kernel, ?KEY), groups()),
    Ended = now_ms(),
    %% The list of all groups is garbage now.
    {noreply, {idle, Ended + ?REST * (Ended - Began)}, hibernate};
handle_info(_, State) -> {noreply, State}.

write(Now, Now) -> ok;
write(Now, New) ->
    %% The old value is marked, too: this process may be killed between the two writes.
    Beside = {?BESIDE, {at_launch(Now), [mark(New), mark(Now)]}},
    case New of
        {ok, Groups} -> set([Beside, {?KEY, Groups}]);
        undefined ->
            set([Beside]),
            ok = application:unset_env(kernel, ?KEY, [{timeout, infinity}])
    end.

set(Pairs) -> ok = application:set_env([{kernel, Pairs}], [{timeout, infinity}]).

-spec groups() -> value().
groups() ->
    #{groups := Configured, other_groups := Others} = sderl_dir:options(),
    Types = #{Group => Type || #{name := Group, type := Type} <- Configured ++ Others},
    case sderl_dir:newest_first() of
        [] -> undefined;
        Own ->
            Named = [{Group, maps:get(Group, Types, normal), Members} || {Group, Members} <- Own],
            Rest = [{Group, Type, Members}
                    || #{name := Group, type := Type, members := Members} <- Others,
                       not lists:keymember(Group, 1, Own)],
            {ok, Named ++ Rest}
    end.
