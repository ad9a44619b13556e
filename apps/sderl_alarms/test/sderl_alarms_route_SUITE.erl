%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_route_SUITE).

%% Routes to real receivers, which fail half of the time, hang, and are slow; and to programs. The
%% alarms are those of a made-up cluster of 10 nodes.

-compile([export_all, nowarn_export_all]).

-include_lib("public_key/include/public_key.hrl").
-include_lib("stdlib/include/assert.hrl").

-define(SOON, 120_000).
-define(NODES, 10).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [delivered, chosen, encrypted, half_fails, slow_and_hanging, odd_answers, restarted, programs,
     one_attempt].

init_per_testcase(Case, Config0) ->
    Config = [{dir, filename:join(proplists:get_value(priv_dir, Config0), atom_to_list(Case))}
              | Config0],
    ok = filelib:ensure_path(dir(Config)),
    Config.

end_per_testcase(_, _) ->
    _ = [application:stop(App) || App <- [sderl_alarms, sderl_mon]],
    _ = sderl_mon_synthetic:stop(),
    _ = [application:unset_env(sderl_alarms, Key) || Key <- [rules_file, state_dir]],
    ok.

%% ---------------------------------------------------------------- helpers

dir(Config) -> proplists:get_value(dir, Config).
secret(Config) -> filename:join(dir(Config), "secret").

%% All nodes have the alarm, and nothing else has one.
start(Config, Routes) -> start(Config, Routes, [busy(1)]).

start(Config, Routes, Rules) ->
    write_rules(Config, Routes, Rules),
    {ok, _} = application:ensure_all_started(sderl_mon),
    {ok, _} = sderl_mon_synthetic:start(#{nodes => ?NODES, groups => 2, edges => 40,
                                          interval_ms => 200, changes => false}),
    _ = application:load(sderl_alarms),
    ok = application:set_env([{sderl_alarms, [{rules_file, rules(Config)},
                                              {state_dir, dir(Config)}]}]),
    {ok, _} = application:ensure_all_started(sderl_alarms).

rules(Config) -> filename:join(dir(Config), "rules.json").

busy(Minor) -> #{alarm => busy, metric => procs, minor => Minor, for_s => 0}.

write(Config, Routes, Minor) -> write_rules(Config, Routes, [busy(Minor)]).

write_rules(Config, Routes, Rules) ->
    ok = file:write_file(secret(Config), "0123456789abcdef-secret\n"),
    Off = [#{alarm => Alarm, off => true}
           || #{alarm := Alarm} <- sderl_alarms_builtin:rules() ++ sderl_alarms_builtin:findings()],
    ok = file:write_file(rules(Config), json:encode(#{rules => Off ++ Rules, routes => Routes})).

%% So that all alarms are over.
all_over(Config, Routes) ->
    write(Config, Routes, 1_000_000_000),
    ok = sderl_alarms:reload().

await(Fun) -> sderl_ct:await(condition, Fun, ?SOON).

hook(Name, Receiver) -> hook(Name, Receiver, #{}).

hook(Name, Receiver, More) ->
    maps:merge(#{name => Name, webhook => sderl_alarms_receiver:url(Receiver), timeout_s => 60},
               More).

counts(Name) ->
    #{routes := Routes} = sderl_alarms:info(),
    [#{counts := Counts} = Route] = [R || #{name := Is} = R <- Routes, Is =:= Name],
    maps:merge(Counts, maps:with([waiting, error], Route)).

%% Those that the receiver took, by delivery.
taken(Receiver) ->
    [Body || #{answer := 200, body := Body} <- sderl_alarms_receiver:requests(Receiver)].

ids(Bodies) -> [Id || #{~"id" := Id} <- Bodies].

%% ---------------------------------------------------------------- cases

%% A receiver that always takes it gets each change once, signed, in order.
delivered(Config) ->
    Receiver = sderl_alarms_receiver:start(fun(_) -> 200 end),
    Routes = [hook(good, Receiver, #{secret_file => list_to_binary(secret(Config))})],
    Began = erlang:system_time(second),
    start(Config, Routes),
    await(fun() -> length(taken(Receiver)) =:= ?NODES end),
    all_over(Config, Routes),
    await(fun() -> length(taken(Receiver)) =:= 2 * ?NODES end),
    await(fun() -> maps:get(waiting, counts(~"good")) =:= 0 end),
    Requests = sderl_alarms_receiver:requests(Receiver),
    Bodies = [Body || #{body := Body} <- Requests],
    ?assertEqual(2 * ?NODES, length(lists:usort(ids(Bodies)))),
    ?assertEqual([~"raised", ~"cleared"], lists:uniq([E || #{~"event" := E} <- Bodies])),
    lists:foreach(fun(#{path := Path, headers := Headers, raw := Raw, body := Body}) ->
        ?assertEqual(~"/hook?a=1", Path),
        #{~"x-sderl-signature" := Signature, ~"x-sderl-delivery" := Id,
          ~"x-sderl-attempt" := ~"1", ~"content-type" := ~"application/json"} = Headers,
        ?assertMatch(#{~"id" := Id, ~"route" := ~"good", ~"alarm" := #{
            ~"alarm" := ~"busy", ~"severity" := ~"minor", ~"text" := _, ~"remedy" := _
        }}, Body),
        [<<"t=", T/binary>>, <<"v1=", Mac/binary>>] = binary:split(Signature, ~","),
        ?assertEqual(binary:encode_hex(
            crypto:mac(hmac, sha256, ~"0123456789abcdef-secret", [T, ".", Raw]), lowercase
        ), Mac),
        ?assert(binary_to_integer(T) >= Began - 1
                andalso binary_to_integer(T) =< erlang:system_time(second) + 1)
    end, Requests),
    ?assertMatch(#{attempts := 2 * ?NODES, delivered := 2 * ?NODES, failed := 0, given_up := 0,
                   overflowed := 0}, counts(~"good")).

%% Each route is told of the alarms that it names, by severity, group and tag, and of no other; that
%% they are over, too.
chosen(Config) ->
    Filters = [{all, #{}}, {major, #{severity => major}}, {two, #{groups => [~"group02"]}},
               {op, #{tags => [~"o*"]}},
               {each, #{severity => major, groups => [~"*02"], tags => [~"op"]}},
               {elsewhere, #{groups => [~"shop"]}}],
    Receivers = #{Name => sderl_alarms_receiver:start(fun(_) -> 200 end) || {Name, _} <- Filters},
    Routes = [hook(Name, map_get(Name, Receivers), Filter) || {Name, Filter} <- Filters],
    %% Major in the first group alone.
    Crowded = #{alarm => crowded, metric => procs, major => 1, for_s => 0, tags => [~"op"],
                groups => [~"group01"]},
    start(Config, Routes, [busy(1), Crowded]),
    await(fun() -> map_size(map_get(groups, sderl_mon_hub:now_topology())) =:= 2 end),
    #{groups := #{~"group01" := #{nodes := One}, ~"group02" := #{nodes := Two}}} =
        sderl_mon_hub:now_topology(),
    Both = [Node || Node <- One, lists:member(Node, Two)],
    ?assertMatch([_ | _], Both),
    Ids = fun(Alarm, Nodes) -> [<<Alarm/binary, $|, Node/binary>> || Node <- Nodes] end,
    Expected = #{all => Ids(~"busy", lists:usort(One ++ Two)) ++ Ids(~"crowded", One),
                 major => Ids(~"crowded", One),
                 two => Ids(~"busy", Two) ++ Ids(~"crowded", Both),
                 op => Ids(~"crowded", One),
                 each => Ids(~"crowded", Both),
                 elsewhere => []},
    Told = fun(Name, Event) ->
        lists:sort([Id || #{~"event" := Is, ~"alarm" := #{~"id" := Id}}
                              <- taken(map_get(Name, Receivers)), Is =:= Event])
    end,
    %% All routes are decided about together.
    AllTold = fun(Event) ->
        await(fun() -> Told(all, Event) =:= lists:sort(map_get(all, Expected)) end),
        [await(fun() -> maps:get(waiting, counts(atom_to_binary(Name))) =:= 0 end)
         || {Name, _} <- Filters],
        ?assertEqual(#{Name => {Event, lists:sort(Of)} || Name := Of <- Expected},
                     #{Name => {Event, Told(Name, Event)} || Name := _ <- Expected})
    end,
    AllTold(~"raised"),
    write_rules(Config, Routes, [busy(1_000_000_000), Crowded#{major := 1_000_000_000}]),
    ok = sderl_alarms:reload(),
    AllTold(~"cleared"),
    [?assertEqual({Name, 2 * length(Of)}, {Name, length(taken(map_get(Name, Receivers)))})
     || Name := Of <- Expected].

%% Over https, as soon as the authority of the certificate is one that this machine trusts.
encrypted(Config) ->
    Receiver = sderl_alarms_receiver:start(fun(_) -> 200 end),
    Made = [{digest, sha256}, {key, {namedCurve, secp256r1}}],
    Address = #'Extension'{extnID = ?'id-ce-subjectAltName', critical = false,
                           extnValue = [{iPAddress, <<127, 0, 0, 1>>}]},
    Named = [{extensions, [Address]} | Made],
    #{server_config := Certified, client_config := Client} =
        public_key:pkix_test_data(#{
            server_chain => #{root => Made, intermediates => [], peer => Named},
            client_chain => #{root => Made, intermediates => [], peer => Made}
        }),
    Secure = encrypt(Certified, Receiver),
    Hook = #{name => secure, timeout_s => 60, secret_file => list_to_binary(secret(Config)),
             webhook => iolist_to_binary(io_lib:format("https://127.0.0.1:~w/hook", [Secure]))},
    start(Config, [Hook]),
    await(fun() -> maps:get(failed, counts(~"secure")) > 0 end),
    #{error := Why, delivered := 0} = counts(~"secure"),
    ?assertMatch({_, _}, binary:match(Why, [~"Unknown CA", ~"unknown_ca", ~"Bad Certificate"])),
    Authority = filename:join(dir(Config), "authority.pem"),
    ok = file:write_file(Authority, public_key:pem_encode(
        [{'Certificate', Der, not_encrypted} || Der <- proplists:get_value(cacerts, Client)])),
    ok = public_key:cacerts_load(Authority),
    try
        await(fun() -> length(taken(Receiver)) =:= ?NODES orelse counts(~"secure") end),
        await(fun() -> maps:get(waiting, counts(~"secure")) =:= 0 end)
    after
        public_key:cacerts_clear()
    end,
    Requests = sderl_alarms_receiver:requests(Receiver),
    ?assertEqual(?NODES, length(lists:usort(ids(taken(Receiver))))),
    [?assertMatch(#{~"x-sderl-signature" := <<"t=", _/binary>>}, Headers)
     || #{headers := Headers} <- Requests],
    ?assertMatch(#{delivered := ?NODES, given_up := 0}, counts(~"secure")).

%% Takes TLS, and hands what is in it on to a receiver. Gives the port.
encrypt(Certified, #{port := To}) ->
    {ok, _} = application:ensure_all_started(ssl),
    {ok, Listen} = ssl:listen(0, [binary, {ip, {127, 0, 0, 1}}, {active, false},
                                  {log_level, none} | Certified]),
    {ok, {_, Port}} = ssl:sockname(Listen),
    _ = spawn_link(fun() -> accept_encrypted(Listen, To) end),
    Port.

accept_encrypted(Listen, To) ->
    {ok, Accepted} = ssl:transport_accept(Listen),
    Pid = spawn(fun() ->
        receive go -> ok end,
        maybe
            {ok, Socket} ?= ssl:handshake(Accepted, ?SOON),
            {ok, Plain} = gen_tcp:connect({127, 0, 0, 1}, To, [binary, {active, true}]),
            ok = ssl:setopts(Socket, [{active, true}]),
            hand_on(Socket, Plain)
        end
    end),
    ok = ssl:controlling_process(Accepted, Pid),
    Pid ! go,
    accept_encrypted(Listen, To).

hand_on(Socket, Plain) ->
    receive
        {ssl, Socket, Bytes} -> ok = gen_tcp:send(Plain, Bytes), hand_on(Socket, Plain);
        {tcp, Plain, Bytes} -> ok = ssl:send(Socket, Bytes), hand_on(Socket, Plain);
        {tcp_closed, Plain} -> ssl:close(Socket);
        {ssl_closed, Socket} -> gen_tcp:close(Plain)
    end.

%% Each change is taken once, whatever failed before, in its order, and each attempt has the same
%% body.
half_fails(Config) ->
    Receiver = sderl_alarms_receiver:start(fun
        (N) when N rem 2 =:= 1 -> 503;
        (_) -> 200
    end),
    start(Config, [hook(half, Receiver)]),
    await(fun() -> length(taken(Receiver)) =:= ?NODES orelse length(taken(Receiver)) end),
    await(fun() -> maps:get(waiting, counts(~"half")) =:= 0 end),
    ?assertMatch(#{attempts := 2 * ?NODES, delivered := ?NODES, failed := ?NODES}, counts(~"half")),
    Requests = sderl_alarms_receiver:requests(Receiver),
    ?assertEqual(?NODES, length(lists:usort(ids(taken(Receiver))))),
    ?assertEqual(lists:uniq(ids([Body || #{body := Body} <- Requests])), ids(taken(Receiver))),
    Tries = maps:groups_from_list(fun(#{body := #{~"id" := Id}}) -> Id end, Requests),
    [begin
         ?assertEqual([~"1", ~"2"], [Try || #{headers := #{~"x-sderl-attempt" := Try}} <- Of]),
         ?assertMatch([_], lists:usort([Raw || #{raw := Raw} <- Of]))
     end || _ := Of <- Tries].

%% Those that hang, or answer too late, get the same one again and again, and hold up nobody else.
slow_and_hanging(Config) ->
    Good = sderl_alarms_receiver:start(fun(_) -> 200 end),
    Slow = sderl_alarms_receiver:start(fun(_) -> {late, 1_500, 200} end),
    Hung = sderl_alarms_receiver:start(fun(_) -> hang end),
    Began = erlang:monotonic_time(millisecond),
    Hurried = #{timeout_s => 1},
    start(Config, [hook(good, Good), hook(slow, Slow, Hurried), hook(hung, Hung, Hurried)]),
    await(fun() -> length(taken(Good)) =:= ?NODES end),
    Took = erlang:monotonic_time(millisecond) - Began,
    ct:pal("good got all in ~w ms", [Took]),
    await(fun() -> length(sderl_alarms_receiver:requests(Slow)) >= 3
                       andalso length(sderl_alarms_receiver:requests(Hung)) >= 3 end),
    lists:foreach(fun({Name, Receiver}) ->
        ?assertMatch([_], lists:usort(ids([B || #{body := B}
                                              <- sderl_alarms_receiver:requests(Receiver)]))),
        ?assertMatch(#{delivered := 0, error := ~"no answer in time", waiting := ?NODES},
                     counts(Name))
    end, [{~"slow", Slow}, {~"hung", Hung}]),
    %% Meanwhile the interface answers at once.
    {Us, _} = timer:tc(fun() -> sderl_alarms:list() end),
    ?assert(Us < 10_000_000).

odd_answers(Config) ->
    Odd = #{rubbish => ~"its answer is not HTTP", close => ~"it closed the connection without an",
            endless => ~"", 302 => ~"it answered 302", 404 => ~"it answered 404",
            100 => ~"it closed the connection without an"},
    Receivers = #{Does => sderl_alarms_receiver:start(fun(_) -> Does end) || Does := _ <- Odd},
    Name = fun(Does) -> iolist_to_binary(io_lib:format("~w", [Does])) end,
    Nobody = #{name => nobody, webhook => ~"http://127.0.0.1:1/", timeout_s => 1},
    NoKey = #{name => no_key, webhook => ~"http://127.0.0.1:1/", secret_file => ~"/nonexistent"},
    start(Config, [Nobody, NoKey
                   | [hook(Name(Does), R, #{timeout_s => 1}) || Does := R <- Receivers]]),
    lists:foreach(fun({Route, Text}) ->
        await(fun() ->
            case counts(Route) of
                #{failed := N, error := Error, delivered := 0} when N > 0 ->
                    binary:match(Error, [Text || Text =/= ~""] ++ [~" "]) =/= nomatch
                        andalso (Text =:= ~"" orelse binary:match(Error, Text) =/= nomatch)
                        orelse Error;
                Other -> Other
            end
        end)
    end, [{~"nobody", ~"127.0.0.1:1 cannot be connected: connection refused"},
          {~"no_key", ~"/nonexistent: no such file"} | [{Name(D), T} || D := T <- Odd]]).

%% What was not delivered before a restart is delivered after it, and nothing that was.
restarted(Config) ->
    Broken = sderl_alarms_receiver:start(fun(N) when N =< 5 -> 200; (_) -> 500 end),
    start(Config, [hook(r, Broken)]),
    await(fun() -> maps:get(failed, counts(~"r")) > 1 end),
    ok = application:stop(sderl_alarms),
    5 = length(taken(Broken)),
    Good = sderl_alarms_receiver:start(fun(_) -> 200 end),
    write(Config, [hook(r, Good)], 1),
    ok = application:start(sderl_alarms),
    await(fun() -> length(taken(Good)) =:= ?NODES - 5 orelse length(taken(Good)) end),
    await(fun() -> maps:get(waiting, counts(~"r")) =:= 0 end),
    ?assertEqual(?NODES, length(lists:usort(ids(taken(Broken) ++ taken(Good))))),
    ?assertEqual(?NODES - 5, length(sderl_alarms_receiver:requests(Good))).

programs(Config) ->
    Got = filename:join(dir(Config), "got"),
    _ = file:delete(Got),
    Script = fun(Name, Text) ->
        File = filename:join(dir(Config), Name),
        ok = file:write_file(File, ["#!/bin/sh\n", Text]),
        ok = file:change_mode(File, 8#755),
        list_to_binary(File)
    end,
    Takes = Script("takes", ["cat >>", Got, "\necho noise\n"]),
    Fails = Script("fails", "cat >/dev/null\necho 'no network' >&2\nexit 3\n"),
    Hangs = Script("hangs", ["echo $$ >>", Got, ".pids\nsleep 600\n"]),
    Routes = [#{name => takes, program => Takes, timeout_s => 60},
              #{name => fails, program => Fails, timeout_s => 60},
              #{name => hangs, program => Hangs, timeout_s => 1},
              #{name => lacks, program => ~"/nonexistent"}],
    start(Config, Routes),
    await(fun() -> maps:get(delivered, counts(~"takes")) =:= ?NODES end),
    {ok, Text} = file:read_file(Got),
    Lines = [json:decode(Line) || Line <- binary:split(Text, ~"\n", [global]), Line =/= ~""],
    ?assertEqual(?NODES, length(lists:usort(ids(Lines)))),
    ?assertEqual(?NODES, length(Lines)),
    await(fun() ->
        case {counts(~"fails"), counts(~"hangs"), counts(~"lacks")} of
            {#{failed := F, error := E1, delivered := 0}, #{failed := H, error := E2},
             #{failed := L, error := E3}} when F > 0, H > 0, L > 0 ->
                ?assertMatch({_, _}, binary:match(E1, ~"ended with status 3: no network")),
                ?assertMatch({_, _}, binary:match(E2, ~"took too long and was ended")),
                ?assertEqual(~"there is no program /nonexistent", E3),
                true;
            Other -> Other
        end
    end),
    %% Nothing of it stays. (On a busy machine some ended before they could write their number.)
    await(fun() -> filelib:is_regular(Got ++ ".pids") end),
    ok = application:stop(sderl_alarms),
    {ok, Pids} = file:read_file(Got ++ ".pids"),
    await(fun() ->
        [Pid || Pid <- string:lexemes(Pids, "\n"),
                filelib:is_dir(["/proc/", Pid])] =:= []
    end).

%% TLS, addresses and certificates, one attempt each.
one_attempt(_) ->
    Post = fun(Url) ->
        sderl_alarms_post:post(uri_string:parse(Url), [], ~"{}", ?SOON)
    end,
    Plain = sderl_alarms_receiver:start(fun(_) -> 200 end),
    #{port := Port} = Plain,
    ?assertEqual(ok, Post(sderl_alarms_receiver:url(Plain))),
    %% TLS to who speaks none.
    {error, Why} = Post(iolist_to_binary(io_lib:format("https://127.0.0.1:~w/", [Port]))),
    ?assertMatch({_, _}, binary:match(Why, ~"cannot be connected")),
    %% A certificate that nobody known has signed.
    Signed = [{digest, sha256}, {key, {namedCurve, secp256r1}}],
    Chain = #{root => Signed, intermediates => [], peer => Signed},
    #{server_config := Certified} =
        public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    {ok, Listen} = ssl:listen(0, [{ip, {127, 0, 0, 1}}, {log_level, none} | Certified]),
    {ok, {_, Secure}} = ssl:sockname(Listen),
    Server = spawn_link(fun() ->
        {ok, Socket} = ssl:transport_accept(Listen),
        ssl:handshake(Socket, ?SOON)
    end),
    {error, Unknown} = Post(iolist_to_binary(io_lib:format("https://127.0.0.1:~w/", [Secure]))),
    ct:pal("~ts", [Unknown]),
    ?assertMatch({_, _}, binary:match(Unknown, [~"Unknown CA", ~"unknown_ca", ~"Bad Certificate"])),
    _ = unlink(Server),
    ok = ssl:close(Listen).
