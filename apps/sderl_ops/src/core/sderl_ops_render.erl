%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_render).
-moduledoc """
What is laid out for one instance, ready: settings with the values of variables and secrets.
""".

-export([variables/4, render/3]).
-export_type([rendered/0]).

-doc """
Texts as they are written on a host; secrets are among them. `config` is the text of a `sys.config`,
`cookie` is `generated` where the service has its own.
""".
-type rendered() :: #{
    names := long | short,
    cookie := generated | binary(),
    kind := release | code,
    applications := [binary()],
    start => [binary(), ...],
    stop => [binary(), ...],
    commands := #{binary() => [binary(), ...]},
    files := #{binary() => binary()},
    env := #{binary() => binary()},
    config := unicode:chardata(),
    start_timeout_s := pos_integer(),
    stop_timeout_s := pos_integer()
}.

-doc """
The values of the variables of templates. `Node` is the instance's, `Host` its host's name and
address, `Folders` those of the instance on it: `state_dir`, `log_dir`, `home`, `release_dir`.
""".
-spec variables(
    sderl_ops_desired:instance(),
    Node :: binary(),
    Host :: #{name := binary(), address := binary(), cluster := binary()},
    Folders :: #{state_dir | log_dir | home | release_dir => binary()}
) -> sderl_ops_template:variables().
variables(#{id := Id, family := Family, index := Index}, Node, Host, Folders) ->
    #{name := Name, address := Address, cluster := Cluster} = Host,
    maps:merge(
        #{atom_to_binary(Key) => Value || Key := Value <- Folders},
        #{
            ~"node" => Node,
            ~"id" => Id,
            ~"family" => Family,
            ~"index" => integer_to_binary(Index),
            ~"host" => Name,
            ~"address" => Address,
            ~"cluster" => Cluster
        }
    ).

-doc """
`Resolve` gives the value of a secret, as `sderl_ops_secret:resolve/1` does. An error has a sentence
for each secret that is not there.
""".
-spec render(
    sderl_ops_desired:settings(),
    sderl_ops_template:variables(),
    fun((sderl_ops_file:secret()) ->
            {ok, sderl_ops_secret:value()} | {error, unicode:chardata()})
) -> {ok, rendered()} | {error, [unicode:chardata(), ...]}.
render(Settings, Variables, Resolve) ->
    #{cookie := Cookie, files := Files, env := Env, hooks := Hooks, config := Config} = Settings,
    References = lists:usort([Secret || {_, _} = Secret <- [Cookie | maps:values(Files)] ++
                                                               maps:values(Env)]),
    Resolved = [{Secret, Resolve(Secret)} || Secret <- References],
    case [Why || {_, {error, Why}} <- Resolved] of
        [] ->
            Values = #{Secret => Value() || {Secret, {ok, Value}} <- Resolved},
            Text = fun
                ({_, _} = Secret) -> map_get(Secret, Values);
                (Template) -> sderl_ops_template:render(Template, Variables)
            end,
            Command = fun(Words) -> [Text(Word) || Word <- Words] end,
            Common = maps:with([names, kind, applications, start_timeout_s, stop_timeout_s],
                               Settings),
            Commands = #{Key => Command(Words)
                         || Key := Words <- maps:with([start, stop], Settings)},
            Named = maps:merge(Hooks, maps:with([check], Settings)),
            {ok, maps:merge(maps:merge(Common, Commands), #{
                cookie => case Cookie of generated -> generated; _ -> Text(Cookie) end,
                commands => #{atom_to_binary(Key) => Command(Words) || Key := Words <- Named},
                files => #{Path => Text(File) || Path := File <- Files},
                env => #{Name => Text(Value) || Name := Value <- Env},
                config => sderl_ops_config:text(Config)
            })};
        Problems ->
            {error, Problems}
    end.
