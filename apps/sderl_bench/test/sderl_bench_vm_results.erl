%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_results).
-moduledoc "Generates files of results as `bin/sderl bench vm` writes them, for tests.".

-export([file_of/2, file_of/3, by_nodes/1, by_nodes/2]).

-type file() :: {sderl_bench_vm_store:header(), [sderl_bench_vm_store:line()]}.

line(Program, N, Round, Ns) ->
    #{kind => vm, program => Program, schedulers => N, round => Round, flags => <<>>, otp => <<>>,
      runs => [Ns, Ns * 1.001, Ns * 0.999], stages => #{}, warm => [Ns], warmed => true, hash => 1,
      text => ~"ok", overhead_ns => 100, repetitions => 1,
      why => #{busy => lists:duplicate(N, 0.9), wall_ns => Ns, cpu_ns => Ns, dirty_busy => 0.0,
               states => #{emulator => 0.8, gc => 0.1, sleep => 0.1}, queue => 0.2,
               queue_max => 3, reductions => 1000, collections => 5, reclaimed_words => 1,
               switches => 9}}.

-doc """
A file of the control, which scales perfectly, and one program `p`, whose time on N schedulers is
`Fun(N)`.
""".
-spec file_of(fun((pos_integer()) -> float()), Rounds :: pos_integer()) -> file().
file_of(Fun, Rounds) -> file_of(Fun, fun(N) -> 1.0e6 / N end, Rounds).

-doc "The same; the time of the control on N schedulers is `Control(N)`.".
-spec file_of(fun((pos_integer()) -> float()), fun((pos_integer()) -> float()),
              Rounds :: pos_integer()) -> file().
file_of(Fun, Control, Rounds) ->
    Header = #{
        machine => #{cores => 8, model => ~"x", memory_mib => 1, quota => null,
                     threads_per_core => 1, kinds_of_cores => 1, memory_nodes => 1,
                     governor => null},
        settings => #{
            programs => [#{name => ~"control", control => true, settings => #{}},
                         #{name => ~"p", control => false, settings => #{a => 1}}],
            points => [#{schedulers => N, flags => <<>>, otp => <<>>} || N <- [1, 2, 4]]
        }
    },
    Lines = [line(Program, N, Round, Time(N) * (1 + Round / 10_000))
             || Round <- lists:seq(1, Rounds), N <- [1, 2, 4],
                {Program, Time} <- [{~"control", Control}, {~"p", Fun}]],
    {through_json(Header), [through_json(Line) || Line <- Lines]}.

-doc "The same file, with as many nodes of one scheduler each in the place of N schedulers.".
-spec by_nodes(file()) -> file().
by_nodes(File) -> by_nodes(File, 1).

-doc "The same file, with as many nodes of `Schedulers` each in the place of N schedulers.".
-spec by_nodes(file(), Schedulers :: pos_integer()) -> file().
by_nodes({#{~"settings" := #{~"points" := Points} = Settings} = Header, Lines},
         Schedulers) ->
    Of = fun(#{~"schedulers" := N} = Line) ->
        Line#{~"schedulers" := Schedulers, ~"nodes" => N}
    end,
    {Header#{~"settings" := Settings#{~"points" := [Of(Point) || Point <- Points]}},
     [Of(Line) || Line <- Lines]}.

through_json(Term) -> json:decode(iolist_to_binary(json:encode(Term))).
