%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_overlay).
-moduledoc false.
%% The names while a batch is made: the coordinator's table, and over it what the batch has changed
%% so far. Later items of the batch are decided against both.

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
The row of a name, without those of homes that this batch drops. What the batch has brought of such
a home before is newer, and stays.
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

-doc "Drops the rows of a home, with those that this batch has brought of it before.".
-spec drop_home(node(), overlay()) -> overlay().
drop_home(N, #c{names = Ns, drops = Drops} = C) ->
    lists:foldl(fun del_row/2, C#c{drops = [N | Drops]},
                [Row || _ := ?ROW_AT(Home) = Row <- Ns, Home =:= N]).
