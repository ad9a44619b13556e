%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_ops_resource).
-moduledoc """
The service of operations on this machine, under `/api/v1`: what it does, what a file would change,
and the requests of `bin/sderl ops` that change something (`m:sderl_web_ops`).

What is begun goes on by itself, and `GET /operations` tells how far it is. No file comes from
outside: what is applied is the file that was applied last, as it is on the machine of the service,
because a file says which programs run there.
""".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3]).

-import(sderl_web_schema, [object/1, object/2, map/1, list/1, text/0, whole/0, any/0, null_or/1,
                           ref/1]).

-define(PLAN_BYTES, 49_152).
-define(NAME_BYTES, 255).
-define(FAMILY_BYTES, 63).
-define(MOST, 9_007_199_254_740_991).

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    Force = {~"force", force, flag, false},
    Instance = [~"operations", ~"instances",
                {~"instance", instance, {text, ?NAME_BYTES}, required}],
    [
        #{op => operations, method => get, path => [~"operations"], role => viewer,
          summary => ~"What a service of operations does with the cluster, where one runs",
          answer => {200, map(any())}},
        #{op => operations_record, method => get, path => [~"operations", ~"record"],
          role => viewer,
          summary => ~"Who did what to the cluster of a service of operations, newest first",
          query => [{~"who", by, {text, ?NAME_BYTES}, none},
                    {~"kind", kind, {word, [request, step, note]}, none},
                    {~"from", since, time, none}, {~"to", until, time, none}],
          pages => {500, 100},
          answer => {200, object(#{entries => list(ref(~"OperationsEntry")),
                                   next => null_or(text())})}},
        #{op => plan_operations, method => post, path => [~"operations", ~"plan"],
          role => operator, looks => true,
          summary => ~"What a file would change, as `bin/sderl ops plan` says; nothing is done",
          body => [{~"text", text, {text, ?PLAN_BYTES}, required}, Force],
          %% Quotes and line ends are two bytes each.
          body_bytes => 102_400,
          answer => {200, object(#{changes => list(text()), steps => list(text()),
                                   refused => list(text())})}},
        begins(apply_operations, [~"operations", ~"apply"], [Force],
               ~"Applies the file that was applied last, as it is now on the service's machine"),
        begins(rollback_operations, [~"operations", ~"rollback"],
               [{~"revision", revision, {whole, 1, ?MOST}, required}, Force],
               ~"Makes an earlier revision the newest"),
        begins(scale_family,
               [~"operations", ~"families", {~"family", family, {text, ?FAMILY_BYTES}, required},
                ~"scale"],
               [{~"count", count, {whole, 1, ?MOST}, required}, Force],
               ~"Gives a family another number of nodes; the file is not changed"),
        begins(drain_instance, Instance ++ [~"drain"], [Force],
               ~"Takes a node out of its groups, then stops it"),
        begins(undrain_instance, Instance ++ [~"undrain"], none,
               ~"Starts a node again that was drained"),
        at_once(pause_operations, ~"pause", ~"Begins nothing more until it is resumed"),
        at_once(resume_operations, ~"resume", ~"Goes on, and tries again what was given up")
    ].

begins(Op, Path, Body, Summary) ->
    Route = #{op => Op, method => post, path => Path, role => operator, summary => Summary,
              creates => true, problems => [conflict, not_found],
              answer => {202, ref(~"Begun")}},
    case Body of
        none -> Route;
        _ -> Route#{body => Body}
    end.

at_once(Op, Word, Summary) ->
    #{op => Op, method => post, path => [~"operations", Word], role => operator,
      summary => Summary, creates => true, problems => [conflict],
      answer => {200, object(#{state => text()})}}.

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    #{
        ~"Begun" => object(#{state => text()}, #{revision => whole(), file => text()}),
        ~"OperationsEntry" => object(#{
            number => whole(), at => text(), who => text(), kind => text(), what => text(),
            result => text(), why => null_or(text())
        })
    }.

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(operations, Args, #{writable := Writable}) ->
    sderl_web_ask:live({operations, Args}, Writable);
answer(operations_record, Args, _) ->
    Wanted = case maps:take(cursor, Args) of
        {Number, Others} when is_integer(Number), Number > 0 -> Others#{before => Number};
        {_, Others} -> Others;
        error -> Args
    end,
    case sderl_web_ops:record(Wanted, sderl_web_ops:folder()) of
        {ok, #{entries := Entries, next := Next}} -> {ok, #{entries => Entries}, #{next => Next}};
        Error -> Error
    end;
answer(plan_operations, #{text := Text, force := Force}, #{name := Name}) ->
    sderl_web_ops:plan(Text, Force, Name, sderl_web_ops:folder());
answer(apply_operations, #{force := Force}, #{name := Name}) ->
    begun(#{do => apply, force => Force, wait => false}, Name);
answer(Op, _, #{name := Name}) when Op =:= pause_operations; Op =:= resume_operations ->
    Do = case Op of pause_operations -> pause; resume_operations -> resume end,
    case sderl_web_ops:change(#{do => Do}, Name, sderl_web_ops:folder()) of
        {ok, #{state := State}} -> {ok, #{state => State}};
        Error -> Error
    end;
answer(Op, Args, #{name := Name}) ->
    begun(request(Op, Args), Name).

request(undrain_instance, Args) -> of_args(undrain, [instance], Args);
request(drain_instance, Args) -> of_args(drain, [instance, force], Args);
request(scale_family, Args) -> of_args(scale, [family, count, force], Args);
request(rollback_operations, Args) -> of_args(rollback, [revision, force], Args).

of_args(Do, Keys, Args) -> (maps:with(Keys, Args))#{do => Do, wait => false}.

begun(Request, Name) ->
    case sderl_web_ops:change(Request, Name, sderl_web_ops:folder()) of
        {ok, #{file := File} = Done} ->
            {ok, Done, #{location => ~"operations", detail => [~"applied ", File]}};
        {ok, Done} -> {ok, Done, #{location => ~"operations"}};
        Error -> Error
    end.
