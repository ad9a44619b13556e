%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_start).
-moduledoc """
Starts virtual machines that measure, one at a time, and says in words why one gave no result.

A program runs in a virtual machine with the flags of its point and the defaults for all others. The
virtual machine is not a node, unless the point has a number of nodes: then it is the first of them,
and starts the others (`m:sderl_bench_vm_nodes`). The end of its output is kept for the message of a
failure.
""".

-export([open/2, close/1, run/3, harness/0]).
-export([remove_after/2]).
-export_type([starter/0, otp/0]).

-doc "`erl` is the program, `dirs` are the folders of the modules for its virtual machines.".
-type otp() :: #{erl := file:filename(), dirs := [file:filename()]}.

-doc "`limit_ms` is for one virtual machine.".
-opaque starter() :: #{dir := file:filename(), otps := #{Name :: string() => otp()},
                       limit_ms := pos_integer()}.

%% Characters of a program's output that are kept, and that are shown.
-define(LAST, 65_536).
-define(SHOWN, 400).
-define(COMPILE_MS, 120_000).
%% The first OTP with the language that the harness is written in.
-define(OLDEST, 27).

-doc """
Prepares to start virtual machines: a folder for their orders and results, and for each OTP the
modules. `{Name, own}` is the OTP that runs this, `{Name, Erl}` another one, which compiles the
modules that it needs from their sources. To be closed.
""".
-spec open([{Name :: string(), own | file:filename()}],
           #{modules := [module()], limit_ms := pos_integer(), _ => _}) ->
    {ok, starter()} | {error, unicode:chardata()}.
open(Otps, #{modules := Modules, limit_ms := Limit}) ->
    %% A new folder that nobody else can read: it is the home of nodes, with their cookie.
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"),
                        lists:concat(["sderl_vm_", os:getpid(), "_", binary_to_list(
                            binary:encode_hex(rand:bytes(16), lowercase))])),
    case file:make_dir(Dir) of
        ok ->
            ok = file:change_mode(Dir, 8#700),
            ok = remove_with(Dir),
            case prepared(Otps, harness() ++ Modules, Dir, #{}) of
                {ok, Prepared} ->
                    {ok, #{dir => Dir, otps => Prepared, limit_ms => Limit}};
                {error, Text} ->
                    _ = file:del_dir_r(Dir),
                    {error, Text}
            end;
        {error, Reason} ->
            {error, ["cannot make the folder ", Dir, ": ", file:format_error(Reason)]}
    end.

-doc "The modules that measure, inside each virtual machine.".
-spec harness() -> [module()].
harness() ->
    [sderl_bench_vm_child, sderl_bench_vm_loop, sderl_bench_vm_why, sderl_bench_vm_counters,
     sderl_bench_vm_migrations, sderl_bench_vm_nodes, sderl_bench_vm_epmd, sderl_bench_vm_release,
     sderl_prof_switch, sderl_prof_locks, sderl_prof_perf, sderl_prof_vm_perf].

%% Removes the folder also if the process that opened it is killed.
remove_with(Dir) ->
    Pid = proc_lib:spawn(?MODULE, remove_after, [self(), Dir]),
    receive
        {Pid, watching} -> ok
    end.

-doc "Removes the folder when that process is gone; `sderl_cli` waits for it after a signal.".
-spec remove_after(pid(), file:filename()) -> ok.
remove_after(Owner, Dir) ->
    Ref = monitor(process, Owner),
    Owner ! {self(), watching},
    receive
        {'DOWN', Ref, process, Owner, _} ->
            _ = file:del_dir_r(Dir),
            ok
    end.

-doc "Removes the folder.".
-spec close(starter()) -> ok.
close(#{dir := Dir}) ->
    _ = file:del_dir_r(Dir),
    ok.

prepared([], _, _, Prepared) ->
    {ok, Prepared};
prepared([{Name, own} | Otps], Modules, Dir, Prepared) ->
    case os:find_executable("erl") of
        false ->
            {error, "there is no erl on the PATH"};
        Erl ->
            Dirs = lists:usort([filename:dirname(Beam) || Module <- Modules,
                                                          Beam <- [code:which(Module)],
                                                          is_list(Beam), Beam =/= ""]),
            prepared(Otps, Modules, Dir, Prepared#{Name => #{erl => Erl, dirs => Dirs}})
    end;
prepared([{Name, Erl} | Otps], Modules, Dir, Prepared) ->
    Into = filename:join(Dir, integer_to_list(map_size(Prepared))),
    maybe
        ok ?= filelib:ensure_path(Into),
        ok ?= not_too_old(Name, Erl),
        ok ?= compiled(Name, Erl, [Module || Module <- Modules, is_ours(Module)], Into),
        prepared(Otps, Modules, Dir, Prepared#{Name => #{erl => Erl, dirs => [Into]}})
    else
        {error, Reason} when is_atom(Reason) ->
            {error, ["cannot make the folder ", Into, ": ", file:format_error(Reason)]};
        Error ->
            Error
    end.

%% An OTP that does not report its release will fail to compile, with a message of its own.
not_too_old(Name, Erl) ->
    Args = ["-noinput", "-boot", "start_clean", "-eval",
            "io:put_chars(erlang:system_info(otp_release)), erlang:halt()."],
    case sderl_bench_program:run(Erl, Args, #{timeout => ?COMPILE_MS, env => clean_env(),
                                              last => ?LAST}) of
        {ok, 0, Said} ->
            Release = string:trim(binary_to_list(Said)),
            case string:to_integer(string:trim(Release, leading, "R")) of
                {Number, _} when is_integer(Number), Number < ?OLDEST ->
                    {error, io_lib:format("OTP ~ts (~ts) is OTP ~ts, and the code that measures "
                                          "runs on OTP ~w or newer: leave it out",
                                          [Name, Erl, Release, ?OLDEST])};
                _ ->
                    ok
            end;
        _ ->
            ok
    end.

%% OTP's own modules come with each OTP.
is_ours(Module) ->
    case code:which(Module) of
        [_ | _] = Beam -> not lists:prefix(code:lib_dir(), Beam);
        _ -> false
    end.

compiled(Name, Erl, Modules, Into) ->
    Sources = [{Module, proplists:get_value(source, Module:module_info(compile))}
               || Module <- Modules],
    case [Module || {Module, Source} <- Sources,
                    not (is_list(Source) andalso filelib:is_regular(Source))] of
        [] ->
            Erlc = erlc(Erl),
            Args = ["-o", Into | [Source || {_, Source} <- Sources]],
            case sderl_bench_program:run(Erlc, Args, #{timeout => ?COMPILE_MS, env => clean_env(),
                                                       last => ?LAST}) of
                {ok, 0, _} -> ok;
                {ok, Status, Said} ->
                    {error, ["OTP ", Name, " cannot compile the programs: its erlc ended with "
                             "status ", integer_to_list(Status), shown(Said)]};
                {error, Reason} ->
                    {error, io_lib:format("OTP ~ts cannot compile the programs: ~ts did not run: "
                                          "~0tp", [Name, Erlc, Reason])}
            end;
        [Module | _] ->
            {error, io_lib:format("OTP ~ts must compile ~ts itself, and its source is not there",
                                  [Name, Module])}
    end.

%% The erlc beside the target of a link: beside the link there may be that of another OTP.
erlc(Erl) ->
    Found = [Erlc || Dir <- [filename:dirname(behind(Erl, 20)), filename:dirname(Erl)],
                     Erlc <- [filename:join(Dir, "erlc")],
                     filelib:is_regular(Erlc)],
    hd(Found ++ [filename:join(filename:dirname(Erl), "erlc")]).

behind(File, 0) -> File;
behind(File, Links) ->
    case file:read_link_all(File) of
        {ok, To} -> behind(filename:absname(To, filename:dirname(File)), Links - 1);
        {error, _} -> File
    end.

-doc """
Starts the virtual machine of a point, which follows an order. An error is a text that says what
happened, without the point.
""".
-spec run(starter(), sderl_bench_vm_matrix:point(), sderl_bench_vm_child:order()) ->
    {ok, #{atom() => term()}} | {error, unicode:chardata()}.
run(#{dir := Dir, otps := Otps, limit_ms := Limit}, #{otp := Name} = Point, Order) ->
    #{erl := Erl, dirs := Dirs} = map_get(Name, Otps),
    Result = filename:join(Dir, "result"),
    File = filename:join(Dir, "order"),
    _ = file:delete(Result),
    Common = sderl_bench_vm_matrix:arguments(Point) ++ ["-boot", "start_clean", "-pa" | Dirs],
    {OfNode, Env, More} = as_node(Point, Dir, Erl, Common),
    {OfRelease, Modules} = with_release(Order),
    Whole = maps:merge(maps:merge(Order#{result => Result}, More), Modules),
    case file:write_file(File, term_to_binary(Whole)) of
        ok ->
            Args = Common ++ ["-noinput" | OfNode ++ OfRelease] ++
                ["-run", "sderl_bench_vm_child", "main", File],
            Ended = sderl_bench_program:run(Erl, Args, #{timeout => Limit,
                                                         env => Env ++ clean_env(),
                                                         last => ?LAST}),
            outcome(file:read_file(Result), Ended, Limit);
        {error, Reason} ->
            {error, ["cannot write ", File, ": ", file:format_error(Reason)]}
    end.

%% The first node, and what it needs to start the others. It makes a cookie in its home, where the
%% others read it: no argument shows it, and it is not the user's.
as_node(#{nodes := Count}, Dir, Erl, Common) ->
    {sderl_bench_vm_epmd:arguments(sderl_bench_vm_nodes:name(1), Dir),
     [{"HOME", Dir}, {"XDG_CONFIG_HOME", Dir}],
     #{nodes => #{folder => Dir, count => Count, erl => Erl, args => Common}}};
as_node(#{}, _, _, _) ->
    {[], [], #{}}.

with_release(#{release := Release}) ->
    {sderl_bench_vm_release:arguments(Release), #{harness => harness()}};
with_release(#{}) ->
    {[], #{}}.

outcome({ok, Binary}, Ended, _) ->
    case {binary_to_term(Binary), Ended} of
        {{ok, Result}, _} -> {ok, Result};
        {{error, Text}, _} -> {error, ["the program crashed: ", Text]};
        %% With the output of the nodes.
        {{not_ready, Text}, {ok, _, <<_, _/binary>> = Said}} -> {error, [Text, shown(Said)]};
        {{not_ready, Text}, _} -> {error, Text}
    end;
outcome(_, {ok, Status, Said}, _) ->
    {error, ["the virtual machine ended with status ", integer_to_list(Status), shown(Said)]};
outcome(_, {error, timeout}, Limit) ->
    {error, io_lib:format("no result within ~w s, so it was killed: the program hangs, or needs a "
                          "longer --limit-s", [Limit div 1000])};
outcome(_, {error, Reason}, _) ->
    {error, io_lib:format("the virtual machine did not start: ~0tp", [Reason])}.

%% Bytes of any kind, as text for a terminal.
shown(Said) ->
    Text = << <<(visible(Char))/utf8>> || Char <- characters(Said), Char =/= $\r >>,
    %% The list of all flags is no help.
    [Before | _] = binary:split(Text, ~"\nUsage: beam"),
    case string:trim(Before) of
        <<>> ->
            " and said nothing";
        Trimmed ->
            %% The first line or the last says what is wrong.
            case string:length(Trimmed) of
                Length when Length > 2 * ?SHOWN ->
                    [" and said: ", string:slice(Trimmed, 0, ?SHOWN), " ... ",
                     string:slice(Trimmed, Length - ?SHOWN)];
                _ ->
                    [" and said: ", Trimmed]
            end
    end.

characters(Bytes) ->
    case unicode:characters_to_list(Bytes) of
        Text when is_list(Text) -> Text;
        _ -> binary_to_list(Bytes)
    end.

visible($\n) -> $\n;
visible(Char) when Char < $\s; Char >= 16#7f, Char < 16#a0 -> $?;
visible(Char) -> Char.

%% Without the variables that point to this OTP, for another one. A crash leaves no dump.
clean_env() ->
    [{"ERL_CRASH_DUMP", "/dev/null"}, {"ERL_CRASH_DUMP_SECONDS", "0"}
     | [{Name, false} || Name <- ["ROOTDIR", "ERL_ROOTDIR", "BINDIR", "EMU", "PROGNAME",
                                  "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", "ERL_LIBS"]]].
