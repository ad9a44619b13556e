%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_proc_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(sderl_attr_proc, [loadavg/1, kernel_entities/1, meminfo/2, cpu_mhz/1, cpu_model/1, quota/1,
                          memory_limit/1, memory_used/1, cgroups/1]).

loadavg_test_() ->
    [?_assertEqual({ok, {0.07, 0.15, 12.0}}, loadavg(~"0.07 0.15 12.00 3/386 21193\n")),
     ?_assertEqual({ok, {3, 386}}, kernel_entities(~"0.07 0.15 12.00 3/386 21193\n")),
     %% Some emulations write whole numbers.
     ?_assertEqual({ok, {0.0, 1.0, 2.5}}, loadavg(~"0 1 2.5 0/0 0")),
     ?_assertEqual({undefined, format}, loadavg(~"")),
     ?_assertEqual({undefined, format}, loadavg(~"a b c 1/2 3")),
     ?_assertEqual({undefined, format}, kernel_entities(~"0.07 0.15 0.88 3 21193")),
     ?_assertEqual({undefined, format}, kernel_entities(~"0.07 0.15 0.88 x/y 21193"))].

meminfo_test_() ->
    Text = <<"MemTotal:       24684096 kB\n"
             "MemFree:        24116124 kB\n"
             "MemAvailable:   24209436 kB\n"
             "HugePages_Total:       0\n">>,
    [?_assertEqual({ok, 24684096}, meminfo(~"MemTotal", Text)),
     ?_assertEqual({ok, 24209436}, meminfo(~"MemAvailable", Text)),
     ?_assertEqual({ok, 0}, meminfo(~"HugePages_Total", Text)),
     %% Kernels before 3.14.
     ?_assertEqual({undefined, no_such_line},
                   meminfo(~"MemAvailable", ~"MemTotal: 1 kB\nMemFree: 1 kB\n")),
     ?_assertEqual({undefined, format}, meminfo(~"MemTotal", ~"MemTotal: much\n"))].

-define(X86, ~"""
    processor	: 0
    vendor_id	: GenuineIntel
    cpu family	: 6
    model		: 85
    model name	: Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz
    cpu MHz		: 3102.138
    cache size	: 36608 KB

    processor	: 1
    model name	: another
    cpu MHz		: 1.0

    """).

-define(ARM64, ~"""
    processor	: 0
    BogoMIPS	: 243.75
    Features	: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics
    CPU implementer	: 0x41
    CPU architecture: 8
    CPU variant	: 0x3
    CPU part	: 0xd0c
    CPU revision	: 1

    """).

-define(PI, ~"""
    processor	: 0
    model name	: ARMv7 Processor rev 3 (v7l)
    BogoMIPS	: 108.00

    Hardware	: BCM2711
    Model		: Raspberry Pi 4 Model B Rev 1.1
    """).

-define(POWER, ~"""
    processor	: 0
    cpu		: POWER9, altivec supported
    clock		: 3425.000000MHz
    revision	: 2.2 (pvr 004e 1202)
    """).

-define(S390, ~"""
    vendor_id       : IBM/S390
    # processors    : 2
    cpu number      : 0
    cpu MHz dynamic : 5200
    cpu MHz static  : 5200
    """).

cpuinfo_test_() ->
    [?_assertEqual({ok, 3102.138}, cpu_mhz(?X86)),
     ?_assertEqual({ok, "Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz"}, cpu_model(?X86)),
     ?_assertEqual({undefined, no_such_line}, cpu_mhz(?ARM64)),
     ?_assertEqual({ok, "ARM 0x41 part 0xd0c"}, cpu_model(?ARM64)),
     ?_assertEqual({ok, "ARMv7 Processor rev 3 (v7l)"}, cpu_model(?PI)),
     ?_assertEqual({undefined, no_such_line}, cpu_mhz(?PI)),
     ?_assertEqual({ok, 3425.0}, cpu_mhz(?POWER)),
     ?_assertEqual({ok, "POWER9, altivec supported"}, cpu_model(?POWER)),
     ?_assertEqual({undefined, no_such_line}, cpu_mhz(?S390)),
     ?_assertEqual({undefined, no_such_line}, cpu_model(?S390)),
     ?_assertEqual({undefined, format}, cpu_mhz(~"cpu MHz : unknown\n")),
     ?_assertEqual({undefined, no_such_line}, cpu_model(~""))].

%% ---------------------------------------------------------------- control groups

files(Files) ->
    fun(Path) ->
        case Files of
            #{Path := Text} -> {ok, Text};
            #{} -> {error, enoent}
        end
    end.

%% A service of systemd, limited by its slice.
v2() ->
    files(#{"/proc/self/cgroup" => ~"0::/system.slice/shop.service\n",
            "/sys/fs/cgroup/system.slice/shop.service/cpu.max" => ~"max 100000\n",
            "/sys/fs/cgroup/system.slice/cpu.max" => ~"150000 100000\n",
            "/sys/fs/cgroup/system.slice/shop.service/memory.max" => ~"1073741824\n",
            "/sys/fs/cgroup/system.slice/shop.service/memory.current" => ~"536870912\n",
            "/sys/fs/cgroup/system.slice/shop.service/memory.stat" =>
                ~"anon 1\nfile 2\ninactive_file 268435456\nactive_file 5\n",
            "/sys/fs/cgroup/system.slice/memory.max" => ~"2147483648\n",
            "/sys/fs/cgroup/system.slice/memory.current" => ~"2147483000\n"}).

%% A container that sees its own group as the root.
container() ->
    files(#{"/proc/self/cgroup" => ~"0::/\n",
            "/sys/fs/cgroup/cpu.max" => ~"50000 100000",
            "/sys/fs/cgroup/memory.max" => ~"max",
            "/sys/fs/cgroup/memory.current" => ~"5"}).

%% Docker with version 1: the path of the host, which is not there in the container.
v1() ->
    files(#{"/proc/self/cgroup" => <<"12:cpu,cpuacct:/docker/abc\n"
                                     "11:memory:/docker/abc\n"
                                     "1:name=systemd:/docker/abc\n"
                                     "0::/\n">>,
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us" => ~"250000\n",
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us" => ~"100000\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes" => ~"1048576\n",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes" => ~"1048000\n",
            "/sys/fs/cgroup/memory/memory.stat" => ~"cache 1\ntotal_inactive_file 48000\n"}).

v1_unlimited() ->
    files(#{"/proc/self/cgroup" => ~"4:memory:/a\n1:cpu:/a\n",
            "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us" => ~"-1\n",
            "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us" => ~"100000\n",
            "/sys/fs/cgroup/memory/a/memory.limit_in_bytes" => ~"9223372036854771712\n",
            "/sys/fs/cgroup/memory/a/memory.usage_in_bytes" => ~"1\n"}).

cgroups_test_() ->
    [?_assertEqual({ok, 1.5}, quota(v2())),
     ?_assertEqual({ok, 1073741824}, memory_limit(v2())),
     %% The slice leaves less than the service's own limit.
     ?_assertEqual({ok, {2147483648, 2147483000}}, memory_used(v2())),
     ?_assertEqual({ok, 0.5}, quota(container())),
     ?_assertEqual({ok, unlimited}, memory_limit(container())),
     ?_assertEqual({ok, unlimited}, memory_used(container())),
     ?_assertEqual({ok, 2.5}, quota(v1())),
     ?_assertEqual({ok, 1048576}, memory_limit(v1())),
     ?_assertEqual({ok, {1048576, 1000000}}, memory_used(v1())),
     ?_assertEqual({ok, unlimited}, quota(v1_unlimited())),
     ?_assertEqual({ok, unlimited}, memory_limit(v1_unlimited())),
     %% No files at all: the root of a machine without limits.
     ?_assertEqual({ok, unlimited}, quota(files(#{"/proc/self/cgroup" => ~"0::/\n"}))),
     ?_assertEqual({undefined, {no_control_groups, enoent}}, quota(files(#{}))),
     ?_assertEqual({undefined, {no_control_groups, enoent}}, memory_used(files(#{}))),
     ?_assertEqual([{2, all, "/sys/fs/cgroup/a:b/c"}, {2, all, "/sys/fs/cgroup/a:b"},
                    {2, all, "/sys/fs/cgroup"}],
                   lists:sublist(cgroups(~"0::/a:b/c\n"), 3)),
     %% No way out of the tree.
     ?_assertEqual(
         [], [D || {_, _, D} <- cgroups(~"0::/../../etc\n"), string:find(D, "..") =/= nomatch]
     )].

%% Whatever such a file has in it, there is a value or a reason.
anything_test_() ->
    sderl_prop:eunit("parsers take any text", 500, fun() ->
        Bits = oneof([~"0", ~"1.5", ~":", ~"\n", ~" ", ~"/", ~"max", ~"cpu MHz", ~"model name",
                      ~"MemTotal", ~"-1", ~"kB", binary()]),
        ?FORALL(Text, ?LET(L, list(Bits), iolist_to_binary(L)),
                begin
                    Read = fun(_) -> {ok, Text} end,
                    lists:all(fun({ok, _}) -> true; ({undefined, _}) -> true; (_) -> false end,
                              [loadavg(Text),
                               kernel_entities(Text),
                               meminfo(~"MemTotal", Text),
                               cpu_mhz(Text),
                               cpu_model(Text),
                               quota(Read),
                               memory_limit(Read),
                               memory_used(Read)])
                end)
    end).
