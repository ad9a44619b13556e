%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_draft).
-moduledoc """
The file of a cluster that runs, from what its nodes say of themselves, and what a person has to
know about it. Pure.

Nodes whose names differ in one number, and which run the same release with the same labels, become
a family. Machines whose nodes all have the same labels `region` and `rack` become a domain with
these. Instances are named by their family and a number; if such a name would be that of another
node, the family gets another name.
""".

-export([file/1]).
-export_type([given/0]).

-doc """
`here` is this machine (`sderl_ops_discover:machine/1`). Code paths of nodes on it have only folders
that exist.
""".
-type given() :: #{
    cluster := binary(),
    names := long | short,
    cookie_file := binary(),
    here := binary(),
    found := sderl_ops_discover:found()
}.

-record(family, {
    name :: binary(),
    nodes :: [binary()],
    release :: binary(),
    labels :: #{binary() => binary()},
    domains :: [binary()]
}).

-define(NODE, "^[A-Za-z0-9_-]{1,200}@[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?$").
-define(LABEL, "^[A-Za-z][A-Za-z0-9_.-]{0,62}$").
-define(PLACE, [~"region", ~"rack"]).
-define(GROUP, "^[^\\x00-\\x1f]{1,200}$").

-doc "The term of a file (`sderl_ops_file:check/2`), and sentences.".
-spec file(given()) -> {sderl_ops_walker:json(), Points :: [unicode:chardata()]}.
file(#{cluster := Cluster, names := Names, cookie_file := Cookie, found := Found} = Given) ->
    #{nodes := All, lost := Lost} = Found,
    {Nodes, Odd} = split(fun(Node, _) -> matches(Node, ?NODE) end, All),
    Providers = providers(Nodes, Given),
    Releases = releases(Nodes, Given),
    Domains = domains(Nodes, Providers),
    Families = families(Nodes, Releases, Domains),
    {Groups, GroupPoints} = groups(Nodes, Families),
    Tree = #{
        ~"cluster" => Cluster,
        ~"names" => atom_to_binary(Names),
        ~"cookie" => #{~"file" => Cookie},
        ~"providers" => #{Name => Config || {Name, Config, _} <- Providers},
        ~"domains" => #{Name => Domain || {Name, Domain, _} <- Domains},
        ~"releases" => #{Name => Release || _ := {Name, Release, _} <- Releases},
        ~"families" => #{F#family.name => family(F) || F <- Families},
        ~"groups" => Groups
    },
    Points = [[Node, " is left out: ", why(Why)] || Node := Why <- ordered(Lost)]
        ++ [[Node, " is left out: such a name cannot be in a file"] || Node := _ <- ordered(Odd)]
        ++ GroupPoints
        ++ lists:usort([Point || _ := {_, _, Points} <- ordered(Releases), Point <- Points])
        ++ [[Node, " is started again by heart when it ends: the service cannot stop it before "
             "that is turned off"] || Node := #{heart := true} <- ordered(Nodes)]
        ++ [["providers.", Name, ": port 22 is assumed, and OpenSSH's own user, key and known "
             "hosts"] || {Name, #{~"type" := ~"ssh"}, _} <- Providers],
    {Tree, Points}.

why(unknown_host) -> "its machine is unknown here";
why(no_port_mapper) -> "its machine does not answer";
why(not_there) -> "it does not run";
why(refused) -> "it runs and cannot be connected: it has another cookie, or hangs";
why(no_answer) -> "it does not answer";
why(ended) -> "it ended while it was asked";
why(late) -> "it did not answer in time".

%% ---------------------------------------------------------------- where they are

%% Providers, each with its addresses.
providers(Nodes, #{here := Here, names := Names}) ->
    Machines = maps:groups_from_list(fun({Address, _}) -> Address end,
                                     fun({_, Machine}) -> Machine end,
                                     [{address(Node), Machine}
                                      || Node := #{machine := Machine} <- Nodes]),
    {Local, Far} = lists:partition(fun(Address) -> hd(map_get(Address, Machines)) =:= Here end,
                                   lists:sort(maps:keys(Machines))),
    [{numbered(~"here", Index), local(Address, Names), [Address]}
     || {Index, Address} <- lists:enumerate(Local)]
        ++ [{~"machines",
             #{~"type" => ~"ssh",
               ~"hosts" => sderl_ops_range:collapse(sderl_ops_range:in_order(Far))},
             Far} || Far =/= []].

local(Address, Names) ->
    Local = #{~"type" => ~"local", ~"hosts" => 1},
    case {Names, Address} of
        {long, ~"127.0.0.1"} -> Local;
        {short, ~"localhost"} -> Local;
        _ -> Local#{~"address" => Address}
    end.

%% Domains, each with its addresses: one for each provider and place (region and rack).
domains(Nodes, Providers) ->
    Said = maps:groups_from_list(fun({Address, _}) -> Address end, fun({_, Place}) -> Place end,
                                 [{address(Node), maps:with(?PLACE, Labels)}
                                  || Node := #{labels := Labels} <- Nodes]),
    Places = #{Address => place(lists:usort(Of)) || Address := Of <- Said},
    {_, Domains} = lists:foldl(fun({Wish, Domain, Addresses}, {Taken, Acc}) ->
        Name = free(Wish, Taken),
        {[Name | Taken], [{Name, Domain, Addresses} | Acc]}
    end, {[], []}, lists:append([domains_of(Provider, Places) || Provider <- Providers])),
    lists:reverse(Domains).

%% If nodes of one machine have different places, the machine has none.
place([Place]) ->
    maps:filter(fun(_, Name) -> Name =/= ~"" andalso byte_size(Name) =< 255 end, Place);
place(_) -> #{}.

domains_of({Provider, _, Addresses}, Places) ->
    case maps:groups_from_list(fun(Address) -> map_get(Address, Places) end, Addresses) of
        Of when map_size(Of) =:= 1 ->
            [{Provider, Place#{~"provider" => Provider}, Addresses} || Place := _ <- Of];
        Of ->
            [{domain_name(Place, Provider),
              Place#{~"provider" => Provider,
                     ~"hosts" => sderl_ops_range:collapse(sderl_ops_range:in_order(Here))},
              Here}
             || Place := Here <- ordered(Of)]
    end.

domain_name(Place, Provider) when Place =:= #{} -> Provider;
domain_name(Place, _) ->
    clean(iolist_to_binary(lists:join("-", [map_get(Key, Place) || Key <- ?PLACE,
                                                                 is_map_key(Key, Place)]))).

address(Node) ->
    [_, Address] = binary:split(Node, ~"@"),
    Address.

%% ---------------------------------------------------------------- what they run

%% Name, release and sentences about it, by its kind.
releases(Nodes, Given) ->
    Kinds = lists:usort([kind(Fact, Given) || _ := Fact <- Nodes]),
    {_, Named} = lists:foldl(fun(Kind, {Taken, Acc}) ->
        Name = free(release_name(Kind), Taken),
        {Release, Points} = release(Kind, Name),
        {[Name | Taken], Acc#{Kind => {Name, Release, Points}}}
    end, {[], #{}}, Kinds),
    Named.

kind(#{release := {~"Erlang/OTP", _}, outside := []} = Fact, _) ->
    {plain, map_get(otp, Fact)};
kind(#{release := {~"Erlang/OTP", _}, outside := Paths, applications := Applications,
       machine := Here}, #{here := Here}) ->
    {code, Paths, Applications};
kind(#{release := {~"Erlang/OTP", _}, outside := Paths}, _) ->
    {far_code, Paths};
kind(#{release := {Name, Version}, root := Root, scripts := Scripts}, _) ->
    {release, Name, Version, Root, Scripts}.

release_name({plain, _}) -> ~"plain";
release_name({code, _, _}) -> ~"code";
release_name({far_code, _}) -> ~"code";
release_name({release, Name, Version, _, _}) ->
    Text = <<(string:lowercase(Name))/binary, "-", Version/binary>>,
    Clean = re:replace(Text, "[^A-Za-z0-9_.-]", "-", [global, {return, binary}]),
    case Clean of
        <<First, _/binary>> when First >= $a, First =< $z; First >= $0, First =< $9 ->
            binary:part(Clean, 0, min(100, byte_size(Clean)));
        _ -> <<"r", Clean/binary>>
    end.

release({code, Paths, Applications}, Name) ->
    {#{~"code" => Paths, ~"applications" => Applications},
     [["releases.", Name, ": a node is started again by erl with these folders and applications; "
       "other flags and settings of the nodes are not known (families have env and config)"]]};
release({plain, Otp}, Name) -> running(["plain OTP ", Otp], Name, "");
release({far_code, [Path | _]}, Name) -> running(["code in ", Path, " and others"], Name, "");
release({release, Of, Version, Root, Scripts}, Name) ->
    Advice = case Scripts of
        [Script | _] ->
            [", such as {\"folder\": \"", Root, "\", \"start\": [\"bin/", Script,
             "\", \"daemon\"], \"stop\": [\"bin/", Script, "\", \"stop\"]}"];
        [] -> ""
    end,
    running([Of, " ", Version, " in ", Root], Name, Advice).

running(Text, Name, Advice) ->
    What = unicode:characters_to_binary(Text),
    Short = string:slice(What, 0, 60),
    {#{~"running" => Short},
     [["releases.", Name, ": how its nodes are started is not known. Before one has to be started "
       "again, put archive or folder with start, or code, in the place of running", Advice]]}.

%% ---------------------------------------------------------------- families

families(Nodes, Releases, Domains) ->
    Alike = maps:groups_from_list(fun({Key, _}) -> Key end, fun({_, Node}) -> Node end,
                                  [{{shape(Node), as(Fact, Releases)}, Node}
                                   || Node := Fact <- ordered(Nodes)]),
    Sets = [{Release, Labels, Set} || {_, {Release, Labels}} := Same <- ordered(Alike),
                                      Set <- one_number(Same)],
    {_, Families} = lists:foldl(fun({Release, Labels, Set}, {Taken, Acc}) ->
        Name = family_name(Set, Taken),
        Sorted = in_order(Set),
        Addresses = lists:usort([address(Node) || Node <- Sorted]),
        Its = [{Domain, Of} || {Domain, Of, In} <- Domains, Addresses -- In =/= Addresses],
        %% Labels that all its domains have need not be repeated.
        Own = maps:filter(fun(Key, Value) ->
            lists:any(fun({_, Of}) -> maps:find(Key, Of) =/= {ok, Value} end, Its)
                orelse not lists:member(Key, ?PLACE)
        end, Labels),
        {[Name | Taken], [#family{name = Name, nodes = Sorted, release = Release, labels = Own,
                                  domains = [Domain || {Domain, _} <- Its]} | Acc]}
    end, {[], []}, Sets),
    lists:reverse(Families).

as(#{labels := Labels} = Fact, Releases) ->
    Kind = hd([K || K := _ <- Releases, is_kind(K, Fact)]),
    {Name, _, _} = map_get(Kind, Releases),
    {Name, maps:filter(fun(Key, Value) ->
        matches(Key, ?LABEL) andalso byte_size(Value) =< 255
    end, Labels)}.

is_kind({plain, Otp}, #{release := {~"Erlang/OTP", _}, otp := Otp, outside := []}) -> true;
is_kind({code, Paths, Applications},
        #{release := {~"Erlang/OTP", _}, outside := Paths, applications := Applications}) -> true;
is_kind({far_code, Paths}, #{release := {~"Erlang/OTP", _}, outside := Paths}) -> true;
is_kind({release, Name, Version, Root, Scripts},
        #{release := {Name, Version}, root := Root, scripts := Scripts}) -> true;
is_kind(_, _) -> false.

%% The parts of a node's name between its numbers, and the numbers.
parts(Node) -> sderl_ops_range:parts(name(Node)).

shape(Node) -> [Part || {Index, Part} <- lists:enumerate(parts(Node)), Index rem 2 =:= 1].

%% Splits names into sets that differ in one number. If they differ in several, the number with the
%% most values is the index.
one_number([_] = One) -> [One];
one_number(Nodes) ->
    Numbers = [{[N || {I, N} <- lists:enumerate(parts(Node)), I rem 2 =:= 0], Node}
               || Node <- Nodes],
    case length(element(1, hd(Numbers))) of
        0 -> [Nodes];
        Count ->
            Kinds = [{length(lists:usort([lists:nth(At, Ns) || {Ns, _} <- Numbers])), At}
                     || At <- lists:seq(1, Count)],
            {_, Varies} = lists:max(Kinds),
            Rest = fun({Ns, _}) -> lists:sublist(Ns, Varies - 1) ++ lists:nthtail(Varies, Ns) end,
            maps:values(maps:groups_from_list(Rest, fun({_, Node}) -> Node end, Numbers))
    end.

in_order(Nodes) -> sderl_ops_range:in_order(fun name/1, Nodes).

name(Node) -> hd(binary:split(Node, ~"@")).

%% The parts that all names have, without the number in which they differ.
family_name([First | _] = Nodes, Taken) ->
    Columns = lists:usort([list_to_tuple(parts(Node)) || Node <- Nodes]),
    Common = case Columns of
        [_] -> string:trim(iolist_to_binary(parts(First)), trailing, "0123456789");
        [One | Others] ->
            [element(I, One) || I <- lists:seq(1, tuple_size(One)),
                                lists:all(fun(Other) ->
                                    element(I, Other) =:= element(I, One)
                                end, Others)]
    end,
    Clean = clean(iolist_to_binary(Common)),
    Ids = [<<Clean/binary, (integer_to_binary(I))/binary>> || I <- lists:seq(1, length(Nodes))],
    Names = [name(Node) || Node <- in_order(Nodes)],
    Misread = [Name || {Id, Name} <- lists:zip(Ids, Names), Id =/= Name, is_number_of(Clean, Name)],
    case Misread of
        [] -> free(Clean, Taken);
        _ -> free(<<Clean/binary, "-n">>, Taken)
    end.

is_number_of(Clean, Name) ->
    case string:prefix(Name, Clean) of
        nomatch -> false;
        Rest -> matches(Rest, "^[0-9]+$")
    end.

clean(Text) ->
    Small = re:replace(string:lowercase(Text), "[^a-z0-9_-]", "-", [global, {return, binary}]),
    Started = string:trim(Small, leading, "0123456789_-"),
    case string:trim(binary:part(Started, 0, min(50, byte_size(Started))), trailing,
                     "0123456789-") of
        <<>> -> ~"node";
        Name -> Name
    end.

free(Name, Taken) -> free(Name, Taken, 1).

free(Name, Taken, Index) ->
    Try = numbered(Name, Index),
    case lists:member(Try, Taken) of
        true -> free(Name, Taken, Index + 1);
        false -> Try
    end.

%% Letters, because a family's name must not end in a digit: web, web-b, ..., web-z, web-ab.
numbered(Name, 1) -> Name;
numbered(Name, Index) -> <<Name/binary, "-", (letters(Index))/binary>>.

letters(Index) when Index =< 26 -> <<($a + Index - 1)>>;
letters(Index) -> <<(letters((Index - 1) div 26))/binary, ($a + (Index - 1) rem 26)>>.

family(#family{nodes = Nodes, release = Release, labels = Labels, domains = Domains}) ->
    #{
        ~"release" => Release,
        ~"domains" => Domains,
        ~"count" => length(Nodes),
        ~"nodes" => sderl_ops_range:collapse(Nodes),
        ~"labels" => Labels
    }.

%% ---------------------------------------------------------------- groups

groups(Nodes, Families) ->
    Ids = #{Node => Id || #family{nodes = Of} = Family <- Families,
                          {Id, Node} <- lists:zip(ids(Family), Of)},
    Said = [{Group, Member} || _ := #{groups := Groups} <- Nodes, Group := Members <- Groups,
                               Member <- Members],
    Members = maps:groups_from_list(fun({Group, _}) -> Group end, fun({_, Node}) -> Node end,
                                    lists:usort(Said)),
    Consistency = maps:fold(fun(_, #{consistency := Of}, Acc) -> maps:merge(Acc, Of) end, #{},
                            Nodes),
    {Good, Odd} = split(fun(Group, _) -> matches(Group, ?GROUP) end, Members),
    Written = [#{name => Group, members => known(Of, Ids),
                 consistency => maps:get(Group, Consistency, available)}
               || Group := Of <- ordered(Good), known(Of, Ids) =/= []],
    {Patterns, Others} = sderl_ops_regular:groups(
        Written, #{Name => length(Of) || #family{name = Name, nodes = Of} <- Families}),
    {Patterns ++ [group(Group, Families) || Group <- Others],
     [["the group ", Group, " is left out: such a name cannot be in a file"]
      || Group <- maps:keys(Odd) ++ lists:usort(lists:append([Of || _ := #{unnamed := Of}
                                                                        <- Nodes]))]
         ++ [["the group ", Group, " goes on with ", Node, ", which is not in the file"]
             || Group := Of <- ordered(Good), Node <- Of, not is_map_key(Node, Ids)]}.

known(Nodes, Ids) -> [Id || Node <- Nodes, {ok, Id} <- [maps:find(Node, Ids)]].

group(#{name := Name, members := Members, consistency := Consistency}, Families) ->
    Whole = [{Family, Ids} || #family{name = Family} = Of <- Families, Ids <- [ids(Of)],
                              Ids -- Members =:= []],
    Others = Members -- lists:append([Ids || {_, Ids} <- Whole]),
    Group = #{
        ~"name" => Name,
        ~"nodes" => [#{~"family" => Family} || {Family, _} <- Whole]
            ++ sderl_ops_range:collapse(sderl_ops_range:in_order(Others))
    },
    case Consistency of
        majority -> Group#{~"consistency" => ~"majority"};
        available -> Group
    end.

ids(#family{name = Name, nodes = Nodes}) ->
    [sderl_ops_groups:instance(Name, Index) || Index <- lists:seq(1, length(Nodes))].

ordered(Map) -> maps:iterator(Map, ordered).

split(Holds, Map) ->
    {maps:filter(Holds, Map), maps:filter(fun(Key, Value) -> not Holds(Key, Value) end, Map)}.

matches(Text, Regex) -> match =:= re:run(Text, Regex, [{capture, none}, dollar_endonly]).
