%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_tap).
-moduledoc """
Switches on what a recording needs: the events of a trace session, and the system profiler, of which
a node has one; and tells what its reader must know of this virtual machine. For
`m:sderl_prof_recorder` alone; it needs no other module of this project.
""".

-export([is_on/1, trace_functions/2, trace_ports/2, trace_processes/3, trace_senders/2]).
-export([code_of/1, alias_bits/0, numbers/1]).
-export([take_profiler/2, end_profiler/2, give_back_profiler/1, guard/2]).

%% No event of the system profiler is later than this.
-define(LATE_MS, 5_000).

-doc """
Calls of functions. Throws `{no_module, Module}` where a module that is recorded whole is not there.
One function is the library's, and the version of this node may lack it: then there is nothing to
record.
""".
-spec trace_functions(trace:session(), [{{module(), atom(), arity() | '_'}, [tuple()]}]) -> ok.
trace_functions(Session, Functions) ->
    lists:foreach(fun({{Module, _, Arity} = Pattern, Spec}) ->
        _ = code:ensure_loaded(Module),
        case trace:function(Session, Pattern, Spec, [local]) of
            0 when Arity =:= '_' -> throw({no_module, Module});
            _ -> ok
        end
    end, Functions).

-doc "The modules of these functions that are loaded: name and checksum.".
-spec code_of([{{module(), atom(), arity() | '_'}, [tuple()]}]) -> [{binary(), binary()}].
code_of(Functions) ->
    [{atom_to_binary(Module), Module:module_info(md5)}
     || Module <- lists:usort([M || {{M, _, _}, _} <- Functions]), erlang:module_loaded(Module)].

-doc """
How many low bits of a process's number are rotated in its aliases: as many as the table of
processes has, by 3 to the left. An alias ends in that number. `none` where this virtual machine
makes aliases in another way.
""".
-spec alias_bits() -> none | pos_integer().
alias_bits() ->
    Bits = bits(erlang:system_info(process_limit)),
    Alias = alias(),
    Written = term_to_binary(Alias),
    _ = unalias(Alias),
    Before = byte_size(Written) - 8,
    <<_:Before/binary, Low:32, High:32>> = Written,
    Number = ((High bsl 32 bor Low) bsr 4) band 16#FFFFFFF,
    {Id, _} = numbers(self()),
    Mask = 1 bsl Bits - 1,
    case ((Id bsl 3) band Mask) bor ((Id band Mask) bsr (Bits - 3)) of
        Turned when Turned =:= Number band Mask, Id bsr Bits =:= Number bsr Bits -> Bits;
        _ -> none
    end.

-doc "What tells a process from others of its node.".
-spec numbers(pid()) -> {Id :: non_neg_integer(), Serial :: non_neg_integer()}.
numbers(Pid) ->
    Written = term_to_binary(Pid),
    Before = byte_size(Written) - 12,
    <<_:Before/binary, Id:32, Serial:32, _:32>> = Written,
    {Id, Serial}.

bits(Limit) -> length(integer_to_list(Limit - 1, 2)).

-doc "Ports, if there are flags.".
-spec trace_ports(trace:session(), [atom()]) -> ok.
trace_ports(_, []) -> ok;
trace_ports(Session, Flags) ->
    _ = trace:port(Session, all, true, Flags),
    ok.

-doc "Processes. Throws `{no_process, Whom}` or `{no_application, Name}`.".
-spec trace_processes(trace:session(), sderl_prof_options:who(), [atom()]) -> ok.
trace_processes(Session, {share, Share}, Flags) ->
    with_children(Session, [Pid || Pid <- processes(), rand:uniform(Share) =:= 1], Flags);
trace_processes(Session, Who, Flags) when is_atom(Who) ->
    _ = trace:process(Session, Who, true, Flags),
    ok;
trace_processes(Session, Who, Flags) ->
    with_children(Session, lists:usort(lists:append([pids(Whom) || Whom <- Who])), Flags).

%% A process that ends now is left out.
with_children(Session, Pids, Flags) ->
    lists:foreach(fun(Pid) ->
        catch_badarg(fun() -> trace:process(Session, Pid, true, [set_on_spawn | Flags]) end)
    end, Pids).

pids(Pid) when is_pid(Pid) ->
    case node(Pid) =:= node() andalso is_process_alive(Pid) of
        true -> [Pid];
        false -> throw({no_process, Pid})
    end;
pids({application, Name}) ->
    case application_controller:get_master(Name) of
        undefined -> throw({no_application, Name});
        Master ->
            [Pid || Pid <- processes(),
                    process_info(Pid, group_leader) =:= {group_leader, Master}]
    end;
pids(Name) ->
    case whereis(Name) of
        Pid when is_pid(Pid) -> [Pid];
        _ -> throw({no_process, Name})
    end.

catch_badarg(Fun) ->
    try Fun() catch error:badarg -> error end.

-doc "Whether a session is there: anybody on the node can destroy it.".
-spec is_on(trace:session()) -> boolean().
is_on(Session) -> catch_badarg(fun() -> trace:info(Session, new, flags) end) =/= error.

-doc """
Has the name of the sending node recorded with each message from another node: `{Node, sderl_from}`
behind the message. (The virtual machine does not know the process.) Messages of the node itself
stay as they are.
""".
-spec trace_senders(trace:session(), Wanted :: boolean()) -> ok.
trace_senders(_, false) -> ok;
trace_senders(Session, true) ->
    _ = trace:recv(Session, [
        {[Own, '_', '_'], [], []} || Own <- [node(), system, clock_service, undefined]
    ] ++ [
        {['$1', '_', '_'], [], [{message, {{'$1', sderl_from}}}]}
    ], []),
    ok.

%% ---------------------------------------------------------------- the system profiler

-doc "Has the system profiler report to the port, unless somebody else has it.".
-spec take_profiler(port(), [atom()]) -> taken | busy | unused.
take_profiler(_, []) ->
    unused;
take_profiler(Port, Flags) ->
    case erlang:system_profile() of
        undefined ->
            case erlang:system_profile(Port, Flags) of
                undefined -> taken;
                %% Somebody took it in between, and gets it back.
                {Before, Options} ->
                    _ = erlang:system_profile(Before, Options),
                    busy
            end;
        _ -> busy
    end.

-doc """
Gives the profiler back, if it reports to the port, when the port has all earlier events. A thread
of the virtual machine passes these on, to the receiver that the profiler has at that moment: on a
busy machine they are late, now and then by all of a short recording.
""".
-spec end_profiler(port() | closed, Flags :: [atom()]) -> ok.
end_profiler(Port, Flags) ->
    case erlang:system_profile() of
        {Port, _} ->
            Now = erlang:monotonic_time(),
            {Heir, Ref} = spawn_monitor(fun() -> take_rest(Port, Now, Flags) end),
            receive {'DOWN', Ref, process, Heir, _} -> ok end;
        _ -> ok
    end.

%% Waiting events come to this process in their order, then those of the process that we start here;
%% later ones end with this process.
take_rest(Port, Now, Flags) ->
    _ = erlang:system_profile(self(), lists:usort([runnable_procs, exclusive | Flags])),
    Last = spawn(fun() -> ok end),
    ok = pass_on(Last, Now, Port, lists:member(runnable_procs, Flags)),
    _ = erlang:system_profile(undefined, []).

pass_on(Last, Now, Port, Processes) ->
    receive
        {profile, Last, _, _, _} ->
            ok;
        Told when element(1, Told) =:= profile ->
            Is = element(tuple_size(Told), Told) =< Now
                andalso (Processes orelse not is_pid(element(2, Told))),
            case Is andalso catch_badarg(fun() -> port_command(Port, term_to_binary(Told)) end) of
                %% The file is gone.
                error -> ok;
                _ -> pass_on(Last, Now, Port, Processes)
            end
    after ?LATE_MS ->
        ok
    end.

-doc "Gives the profiler back, if it reports to the port.".
-spec give_back_profiler(port() | closed) -> ok.
give_back_profiler(Port) ->
    case erlang:system_profile() of
        {Port, _} ->
            _ = erlang:system_profile(undefined, []),
            ok;
        _ -> ok
    end.

-doc "Gives it back when the recorder ends, however it does.".
-spec guard(pid(), port()) -> ok.
guard(Recorder, Port) ->
    Ref = monitor(process, Recorder),
    receive
        {'DOWN', Ref, process, Recorder, _} -> give_back_profiler(Port)
    end.
