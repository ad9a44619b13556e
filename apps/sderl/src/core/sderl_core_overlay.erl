%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_overlay).
-moduledoc false.
%% The names as a batch in the making finds them: the coordinator's table, and over it what the
%% batch itself changes. What comes later in the batch is decided against both.

-include("sderl_core.hrl").
-include("sderl_core_overlay.hrl").

-export([new/3]).
-export([name/2, pid_name/2, kept/2, is_free/3]).
-export([put_row/2, del_row/2, drop_home/2]).
-export_type([overlay/0]).

-type overlay() :: #c{}.

-doc "Nothing is changed yet.".
-spec new(module(), Store :: term(), #s{}) -> overlay().
new(Mod, Store, #s{d = D} = S) ->
    #c{mod = Mod,
       store = Store,
       mem = D#d.mem,
       was = D#d.mem,
       view = D#d.view,
       sessions = S#s.sessions,
       mode = S#s.mode,
       clashes = D#d.clashes}.

-doc "The row of a name.".
-spec name(Name :: term(), overlay()) -> sderl_row:t() | none.
name(Name, #c{names = Ns, mod = Mod, store = St}) ->
    case Ns of
        #{Name := Row} -> Row;
        _ -> Mod:lookup(St, Name)
    end.

-doc "The name of a process.".
-spec pid_name(pid(), overlay()) -> {ok, Name :: term()} | none.
pid_name(Pid, #c{pids = Ps, mod = Mod, store = St}) ->
    case Ps of
        #{Pid := none} -> none;
        #{Pid := [Name]} -> {ok, Name};
        _ -> Mod:name_of(St, Pid)
    end.

-spec put_row(sderl_row:t(), overlay()) -> overlay().
put_row(?ROW(Name, Pid, _, _, _) = Row, #c{names = Ns, pids = Ps} = C) ->
    C#c{names = Ns#{Name => Row}, pids = Ps#{Pid => [Name]}}.

-spec del_row(sderl_row:t(), overlay()) -> overlay().
del_row(?ROW(Name, Pid, _, _, _), #c{names = Ns, pids = Ps} = C) ->
    C#c{names = Ns#{Name => none}, pids = Ps#{Pid => none}}.

-doc "Whether a process has no other name, as this batch leaves it.".
-spec is_free(pid(), Name :: term(), overlay()) -> boolean().
is_free(Pid, Name, C) ->
    case pid_name(Pid, C) of
        none -> true;
        {ok, Name} -> true;
        {ok, Other} -> kept(Other, C) =:= none
    end.

-doc """
The row of a name once this batch has let go of homes that left. What the batch itself brought
before is newer than that.
""".
-spec kept(Name :: term(), overlay()) -> sderl_row:t() | none.
kept(Name, #c{names = Ns, drops = Drops} = C) ->
    case name(Name, C) of
        ?ROW_AT(Home) = Row when not is_map_key(Name, Ns) ->
            case lists:member(Home, Drops) of
                true -> none;
                false -> Row
            end;
        Row -> Row
    end.

-doc "The rows of a home go, with what this batch brought of it before.".
-spec drop_home(node(), overlay()) -> overlay().
drop_home(N, #c{names = Ns, drops = Drops} = C) ->
    lists:foldl(fun del_row/2, C#c{drops = [N | Drops]},
                [Row || _ := ?ROW_AT(Home) = Row <- Ns, Home =:= N]).
