%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_file).
-moduledoc """
Reads a file of operations, which describes a cluster. It is JSON, or one Erlang map.

```erlang
{ok, File} = sderl_ops_file:read("shop.json"),
3 = maps:get(count, maps:get(~"web", maps:get(families, File))).
```

A file is accepted whole or not at all: `{error, Problems}` has all its problems, and
`format_error/1` gives a sentence for each.
""".

-export([read/1, read_text/2, check/2, set_count/3, format_error/1]).
-export_type([file/0, id/0, secret/0, text/0, command/0, kubernetes/0, release/0, domain/0,
              family/0, limits/0, restart/0, hooks/0, groups/0, alarms/0, problem/0]).

-doc "A name that the file gives: of a cluster, provider, release, domain or family.".
-type id() :: binary().
-type secret() :: sderl_ops_secret:secret().
-doc "A template of `m:sderl_ops_template`, or a reference to a secret.".
-type text() :: binary() | secret().
-doc "A program and its arguments, each a template.".
-type command() :: [binary(), ...].

-doc "A file with its defaults filled in. Paths are absolute.".
-type file() :: #{
    cluster := id(),
    names := long | short,
    cookie := generated | secret(),
    providers := #{id() => provider()},
    releases := #{id() => release()},
    domains := #{id() => domain()},
    families := #{id() => family()},
    groups := groups(),
    upgrade := upgrade()
}.
-type provider() ::
    #{type := local, hosts := 1..500, address => binary(), relay := boolean()}
    | #{
        type := ssh,
        hosts := [#{name := binary(), address := binary(), port := 1..65535}, ...],
        user => binary(),
        key => binary(),
        known_hosts => binary(),
        relay := boolean(),
        lost_after_s := pos_integer()
    }
    | #{
        type := exec,
        program := binary(),
        arguments := [binary()],
        env := #{Variable :: binary() => binary() | secret()},
        timeout_s := pos_integer(),
        user => binary(),
        key => binary(),
        known_hosts => binary(),
        lost_after_s := pos_integer()
    }
    | kubernetes().
-type kubernetes() :: #{
    type := kubernetes,
    namespace := binary(),
    dns_domain := binary(),
    port := 1..65535,
    ready := serves | well,
    labels := #{binary() => binary()},
    topology := #{region := binary(), rack := binary()},
    storage => #{size := binary(), class => binary()},
    service_account => binary(),
    pull_secret => binary(),
    run_as => pos_integer(),
    network_policy := boolean()
}.
-doc """
A release has exactly one of `archive`, `folder`, `code`, `image` and `running`. An archive also has
`sha256` and `start`, a folder and an image have `start`.
""".
-type release() :: #{
    image => binary(),
    directory => binary(),
    archive => binary(),
    sha256 => binary(),
    folder => binary(),
    code => [binary(), ...],
    running => binary(),
    applications => [binary()],
    start => command(),
    stop => command(),
    check => command(),
    files := #{Path :: binary() => text()},
    env := #{Variable :: binary() => text()},
    start_timeout_s := pos_integer(),
    stop_timeout_s := pos_integer()
}.
-type domain() :: #{
    provider := id(),
    region => binary(),
    rack => binary(),
    labels := #{binary() => binary()},
    hosts := all | [binary(), ...] | (HowMany :: pos_integer())
}.
-type family() :: #{
    release := id(),
    domains := [id(), ...],
    count := pos_integer(),
    nodes => [binary(), ...],
    labels := #{binary() => binary()},
    select := spread | pack | random,
    limits := limits(),
    restart := restart(),
    hooks := hooks(),
    env := #{Variable :: binary() => text()},
    config := sderl_ops_config:config()
}.
-type limits() :: #{per_host => pos_integer(), cpu => binary(), memory => binary()}.
-type restart() :: #{policy := always | never, most := pos_integer(), within_s := pos_integer()}.
-type hooks() :: #{
    before_start => command(),
    after_start => command(),
    before_stop => command(),
    after_stop => command()
}.
-type groups() :: [listed_group() | pattern()] | pattern().
-type listed_group() :: #{
    name := binary(),
    nodes := [binary() | {family, id()}, ...],
    consistency := available | majority
}.
-doc """
The other keys are the options of `m:sderl_pattern`; `parts` are groups that share no node. `first`
is the number in the name of the first group, `digits` how many digits numbers have at least.
""".
-type pattern() :: #{
    pattern := parts | sderl_pattern:pattern(),
    families => [id(), ...],
    name := binary(),
    first => non_neg_integer(),
    digits => pos_integer(),
    consistency := available | majority,
    atom() => term()
}.
-type upgrade() :: #{
    batch := pos_integer(),
    canaries := non_neg_integer(),
    wait_s := non_neg_integer(),
    roll_back := boolean(),
    alarms => alarms()
}.
-doc "A dashboard, and the token with which its alarms are read.".
-type alarms() :: #{url := binary(), token := secret(), tls_ca => binary()}.
-type problem() :: sderl_ops_walker:problem().

-define(MOST_JSON_BYTES, 16 * 1024 * 1024).
%% Parsing an Erlang term takes a hundred times its size.
-define(MOST_ERLANG_BYTES, 1024 * 1024).
-define(MOST_TEMPLATE_BYTES, 1024 * 1024).

-doc """
Reads and checks a file. It is an Erlang term if its name ends in `.term`, `.terms`, `.config` or
`.eterm`, JSON if that ends in `.json`, and otherwise JSON if it begins with `{`.
""".
-spec read(file:name_all()) -> {ok, file()} | {error, [problem(), ...]}.
read(Name) ->
    Path = filename:absname(unicode:characters_to_binary(Name)),
    maybe
        {ok, Text} ?= read_bytes(Path, ?MOST_JSON_BYTES, []),
        {ok, Tree, Problems} ?= read_tree(kind(Path, Text), Text),
        {ok, File} ?= check_tree(Tree, Problems, filename:dirname(Path)),
        load_templates(File)
    end.

-doc """
Checks a text, which is JSON, as if it were a file in the folder `Base`. No other file is read: a
text with templates is refused.
""".
-spec read_text(binary(), Base :: binary() | unknown) -> {ok, file()} | {error, [problem(), ...]}.
read_text(Text, Base) ->
    maybe
        {ok, Tree, Problems} ?= sderl_ops_tree:from_json(Text),
        {ok, #{releases := Releases} = File} ?= check_tree(Tree, Problems, Base),
        [] ?= [{[~"releases", Name, ~"files", Inner], explained,
                "a template is not read for a text: see it where the service runs, with "
                "`bin/sderl ops plan FILE`"}
               || Name := #{files := Files} <- maps:iterator(Releases, ordered),
                  Inner := {template, _} <- maps:iterator(Files, ordered)],
        {ok, File}
    else
        {error, _} = Error -> Error;
        Templates -> {error, Templates}
    end.

-doc """
Checks the term of a file. Relative paths in it begin at the folder `Base`. No other file is read:
`{template, Path}` stays in `files`.
""".
-spec check(term(), Base :: binary()) -> {ok, file()} | {error, [problem(), ...]}.
check(Term, Base) ->
    {ok, Tree, Problems} = sderl_ops_tree:plain(Term),
    check_tree(Tree, Problems, Base).

check_tree(Tree, Before, Base) ->
    {File, Problems} = sderl_ops_walker:walk(sderl_ops_schema:file(), Tree, Base),
    case lists:usort(Before ++ Problems ++ sderl_ops_references:check(File, Problems)) of
        [] -> {ok, File};
        Found -> {error, Found}
    end.

-doc "The file with another number of nodes in a family.".
-spec set_count(file(), Family :: id(), Count :: term()) ->
    {ok, file()} | {error, [problem(), ...]}.
set_count(#{families := Families} = File, Family, Count) ->
    Rule = {object, "a family", [{count, required, count_rule()}]},
    maybe
        ok ?= known_family(Family, Families),
        [] ?= walk_at([~"families", Family], Rule, #{~"count" => Count}),
        #{Family := Old} = Families,
        Scaled = File#{families := Families#{Family := Old#{count := Count}}},
        [] ?= sderl_ops_references:check(Scaled, []),
        {ok, Scaled}
    else
        Problems -> {error, Problems}
    end.

known_family(Family, Families) when is_map_key(Family, Families) -> ok;
known_family(Family, Families) ->
    [sderl_ops_walker:no_such([~"families"], Family, "a family", Families)].

count_rule() ->
    {object, _, Fields} = sderl_ops_schema:file(),
    {families, _, {named, _, {object, _, Family}, _}} = lists:keyfind(families, 1, Fields),
    {count, _, Rule} = lists:keyfind(count, 1, Family),
    Rule.

walk_at(Path, Rule, Term) ->
    {_, Problems} = sderl_ops_walker:walk(Rule, Term, ~"/"),
    [{Path ++ Rest, Found, Expected} || {Rest, Found, Expected} <- Problems].

-doc "A problem as one sentence: where it is, what is there, and what may be there.".
-spec format_error(problem()) -> unicode:chardata().
format_error(Problem) -> sderl_ops_walker:sentence(Problem).

%% ---------------------------------------------------------------- reading

read_bytes(Path, Most, At) ->
    case file:open(Path, [read, raw, binary]) of
        {ok, Device} ->
            %% Never more than that, even if the file grows.
            Read = file:read(Device, Most + 1),
            ok = file:close(Device),
            case Read of
                {ok, Text} when byte_size(Text) =< Most -> {ok, Text};
                {ok, _} -> too_large(Path, Most, At);
                eof -> unreadable(Path, "it is empty", At);
                {error, Why} -> unreadable(Path, file:format_error(Why), At)
            end;
        {error, Why} ->
            unreadable(Path, file:format_error(Why), At)
    end.

too_large(Path, Most, At) ->
    unreadable(Path, io_lib:format("it has more than ~b MiB", [Most div 1024 div 1024]), At).

unreadable(Path, Why, At) ->
    Text = unicode:characters_to_list([Path, " cannot be read: ", Why]),
    {error, [{At, explained, Text}]}.

kind(Path, Text) ->
    case filename:extension(Path) of
        ~".json" -> json;
        Erlang when Erlang =:= ~".term"; Erlang =:= ~".terms"; Erlang =:= ~".config";
                    Erlang =:= ~".eterm" ->
            erlang;
        _ ->
            case sderl_ops_tree:skip_blanks(Text) of
                <<${, _/binary>> -> json;
                _ -> erlang
            end
    end.

read_tree(json, Text) ->
    sderl_ops_tree:from_json(Text);
read_tree(erlang, Text) when byte_size(Text) > ?MOST_ERLANG_BYTES ->
    {error, [{[], explained, "an Erlang term may have 1 MiB; write a larger file as JSON"}]};
read_tree(erlang, Text) ->
    sderl_ops_tree:from_erlang(Text).

load_templates(#{releases := Releases} = File) ->
    {Loaded, Problems} = lists:mapfoldl(
        fun({Name, #{files := Files} = Release}, Found) ->
            {Texts, More} = lists:mapfoldl(
                fun({Inner, Text}, Fs) ->
                    case load_template(Text, [~"releases", Name, ~"files", Inner]) of
                        {ok, Loaded} -> {{Inner, Loaded}, Fs};
                        {error, F} -> {{Inner, Text}, F ++ Fs}
                    end
                end,
                Found, maps:to_list(Files)
            ),
            {{Name, Release#{files := maps:from_list(Texts)}}, More}
        end,
        [], maps:to_list(Releases)
    ),
    case Problems of
        [] -> {ok, File#{releases := maps:from_list(Loaded)}};
        _ -> {error, lists:usort(Problems)}
    end.

load_template({template, Path}, At) ->
    maybe
        {ok, Text} ?= read_bytes(Path, ?MOST_TEMPLATE_BYTES, At),
        Rule = {template, "the text of a template", ?MOST_TEMPLATE_BYTES},
        [] ?= walk_at(At, Rule, Text),
        {ok, Text}
    else
        {error, _} = Error -> Error;
        Problems -> {error, Problems}
    end;
load_template(Text, _) ->
    {ok, Text}.
