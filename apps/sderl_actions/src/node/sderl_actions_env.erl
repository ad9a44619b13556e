%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_env).
-moduledoc """
Changes the environment of applications on this node, and undoes changes.

The former values are kept on the node itself, like the environment: both are gone when the node
ends, and no secret leaves it. (They are in the environment of an application that does not exist,
because code that was loaded into a node is deleted again. Their key names a secret, because former
values may be secrets, and the table of environments can be shown.)
""".

-export([set/1, undo/1, changes/1]).

-define(KEPT, sderl_actions_undo).
-define(KEY, secret_changes).
-define(MOST, 200).
-define(SHOWN, 500).

-type change() :: #{
    id := binary(),
    at := integer(),
    application := atom(),
    key := atom(),
    former := undefined | {ok, term()},
    value := undefined | {ok, term()}
}.

-doc "Sets a parameter, or removes it. `request` is the id by which it is undone.".
-spec set(map()) -> sderl_actions_node:result().
set(Args) -> alone(fun() -> change(Args) end).

%% One change at a time: otherwise two changes of one parameter could keep the same former value, or
%% one could be lost from the list. The name is free when its process has ended, however it does.
alone(Do) ->
    try register(?MODULE, self()) of
        true ->
            try Do() after unregister(?MODULE) end
    catch
        error:badarg ->
            Monitor = monitor(process, ?MODULE),
            receive {'DOWN', Monitor, process, _, _} -> alone(Do) end
    end.

change(#{application := AppText, parameter := KeyText, request := Id} = Args) ->
    maybe
        {ok, App} ?= sderl_actions_show:atom(AppText),
        true ?= lists:keymember(App, 1, application:loaded_applications()),
        {ok, Key} ?= sderl_actions_show:atom(KeyText),
        {ok, Value} ?= value(Args),
        Former = application:get_env(App, Key),
        ok ?= is_known(Former, Args),
        ok ?= keep(#{id => Id, at => erlang:system_time(millisecond), application => App,
                     key => Key, former => Former, value => Value}),
        ok = put_env(App, Key, Value),
        {ok, #{application => AppText, parameter => KeyText, before => shown(Key, Former),
               now => shown(Key, Value)}}
    else
        false -> {error, <<"the application ", AppText/binary, " is not loaded">>};
        Error -> Error
    end.

value(#{remove := true}) -> {ok, undefined};
value(#{value := Text, parameter := Key}) ->
    case sderl_actions_term:read(Text) of
        {ok, Term} -> {ok, {ok, Term}};
        {error, _} = Error ->
            %% The sentence contains parts of the text.
            case sderl_actions_secret:is_secret(Key)
                 orelse sderl_actions_secret:names_secret(Text) of
                true ->
                    {error, <<"the value is no term that this node can read, and is not shown, "
                              "because it is a secret: write a text as \"...\" or <<\"...\">>">>};
                false -> Error
            end
    end;
value(_) -> {error, <<"value is missing: it is an Erlang term; or remove is true">>}.

%% Setting a misspelt parameter would have no effect.
is_known(undefined, #{create := false, parameter := Key}) ->
    {error, <<"the application has no parameter ", Key/binary, " set; create sets it anyway">>};
is_known(_, _) -> ok.

put_env(App, Key, undefined) -> application:unset_env(App, Key);
put_env(App, Key, {ok, Value}) -> application:set_env(App, Key, Value).

keep(Change) ->
    Kept = kept(),
    case length(Kept) < ?MOST of
        true -> application:set_env(?KEPT, ?KEY, [Change | Kept]);
        false ->
            {error, <<"200 changes of this node wait to be undone, which is the most: undo some">>}
    end.

-spec kept() -> [change()].
kept() -> application:get_env(?KEPT, ?KEY, []).

-doc """
Restores the value before a change. If the value was changed again meanwhile, it stays, unless
`force` is given.
""".
-spec undo(map()) -> sderl_actions_node:result().
undo(Args) -> alone(fun() -> put_back(Args) end).

put_back(#{change := Id, force := Force}) ->
    Kept = kept(),
    case [Change || #{id := Its} = Change <- Kept, Its =:= Id] of
        [#{application := App, key := Key, former := Former, value := Value} = Change] ->
            Now = application:get_env(App, Key),
            case Now =:= Value orelse Force of
                true ->
                    ok = put_env(App, Key, Former),
                    ok = application:set_env(?KEPT, ?KEY, lists:delete(Change, Kept)),
                    {ok, #{application => atom_to_binary(App), parameter => atom_to_binary(Key),
                           before => shown(Key, Now), now => shown(Key, Former),
                           changed_meanwhile => Now =/= Value}};
                false ->
                    {error, <<"the node changed it meanwhile, to ", (shown(Key, Now))/binary,
                              ": force => true puts back what was there all the same">>}
            end;
        [] ->
            {error, <<"this node knows no such change: it was undone, or the node was started "
                      "again, with the environment of its start">>}
    end.

shown(_, undefined) -> <<"(not set)">>;
shown(Key, {ok, Value}) ->
    case sderl_actions_secret:is_secret(Key) of
        true -> sderl_actions_secret:mask();
        false -> sderl_actions_show:line(Value, ?SHOWN)
    end.

-doc "The changes of an application that can be undone, the latest first.".
-spec changes(atom()) -> [#{change | at | parameter | before | set | holds => term()}].
changes(App) ->
    [#{change => Id, at => At, parameter => atom_to_binary(Key), before => shown(Key, Former),
       set => shown(Key, Value), holds => application:get_env(App, Key) =:= Value}
     || #{id := Id, at := At, application := Its, key := Key, former := Former,
          value := Value} <- kept(), Its =:= App].
