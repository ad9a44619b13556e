%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_filter).
-moduledoc """
The filter of a search in the log. Pure.

All given options must match. `text`: a part of the text, ignoring case; `node` and `group`: by
their ids; `level`: that or more severe; `module`: the code that logged, as `gen_server`,
`gen_server:call` or `gen_server:call/2`; `from` and `to`: times; `before` and `after`: numbers of
events, which are not included. The newest events come first, at most `limit` (100).
""".

-export([new/1, limit/1, within/2, may_hold/2, holds/2]).
-export_type([options/0, filter/0]).

-type options() :: #{
    text => binary(),
    node => sderl_mon_types:id(),
    group => sderl_mon_types:id(),
    level => sderl_mon_log_message:level(),
    module => binary(),
    from => sderl_mon_types:t(),
    to => sderl_mon_types:t(),
    before => integer(),
    'after' => integer(),
    limit => pos_integer()
}.

-record(filter, {
    options :: options(),
    levels :: 0..255,
    %% The pattern of the text, and whether it can be looked for in bytes.
    text = none :: none | {ascii | unicode, term()}
}).
-opaque filter() :: #filter{}.

-define(MOST, 1000).
-define(TEXT, 1000).

-doc "Makes a filter. Options with the value `none` or an empty text count as not given.".
-spec new(options()) -> {ok, filter()} | {error, {bad_option, term(), term()}}.
new(Given) when is_map(Given) ->
    IsGiven = fun(_, Value) -> Value =/= none andalso Value =/= <<>> end,
    Options = maps:merge(#{limit => 100}, maps:filter(IsGiven, Given)),
    case [{Key, Value}
          || Key := Value <- maps:iterator(Options, ordered), not is_option(Key, Value)] of
        [] ->
            {ok, #filter{options = Options, levels = levels(Options), text = pattern(Options)}};
        [{Key, Value} | _] ->
            {error, {bad_option, Key, Value}}
    end.

is_option(Key, Value) when Key =:= text; Key =:= node; Key =:= group; Key =:= module ->
    is_binary(Value) andalso byte_size(Value) =< ?TEXT andalso
        is_binary(unicode:characters_to_binary(Value));
is_option(level, Value) -> lists:member(Value, sderl_mon_log_message:levels());
is_option(limit, Value) -> is_integer(Value) andalso Value >= 1 andalso Value =< ?MOST;
is_option(Key, Value) when Key =:= from; Key =:= to; Key =:= before; Key =:= 'after' ->
    is_integer(Value);
is_option(_, _) -> false.

levels(#{level := Level}) -> (1 bsl (sderl_mon_log_message:severity(Level) + 1)) - 1;
levels(_) -> 255.

pattern(#{text := Text}) ->
    {Kind, Flags} = case is_ascii(Text) of
        true -> {ascii, [caseless]};
        false -> {unicode, [caseless, unicode]}
    end,
    {ok, Pattern} = re:compile(quoted(Text), Flags),
    {Kind, Pattern};
pattern(_) -> none.

is_ascii(Text) -> lists:all(fun(C) -> C < 128 end, binary_to_list(Text)).

%% Only letters, digits and bytes beyond ASCII need no quoting.
quoted(Text) -> << <<(quote(C))/binary>> || <<C>> <= Text >>.

quote(C) when C >= 128; C >= $0, C =< $9; C >= $a, C =< $z; C >= $A, C =< $Z -> <<C>>;
quote(C) -> <<"\\x", (binary:encode_hex(<<C>>))/binary>>.

-doc "How many events are wanted.".
-spec limit(filter()) -> pos_integer().
limit(#filter{options = #{limit := Limit}}) -> Limit.

-doc """
Whether a stretch may have matching events, by its index; `done`: neither may any older one.
""".
-spec within(sderl_mon_log_index:stretch(), filter()) -> boolean() | done.
within(#{last := Last}, #filter{options = #{'after' := After}}) when Last =< After -> done;
within(#{first := First, from := From, to := To, levels := Levels},
       #filter{options = Options, levels = Wanted}) ->
    Levels band Wanted =/= 0 andalso First < maps:get(before, Options, infinity) andalso
        To >= maps:get(from, Options, 0) andalso From =< maps:get(to, Options, infinity).

-doc "Whether records may have matching events, by their bytes as a whole.".
-spec may_hold(binary(), filter()) -> boolean().
may_hold(Bytes, #filter{options = Options, text = Text}) ->
    lists:all(fun(Key) ->
        not is_map_key(Key, Options) orelse binary:match(Bytes, map_get(Key, Options)) =/= nomatch
    end, [node, group, module]) andalso may_say(Bytes, Text).

may_say(Bytes, {ascii, Pattern}) -> is_match(Bytes, Pattern);
may_say(_, _) -> true.

is_match(Text, Pattern) -> re:run(Text, Pattern, [{capture, none}]) =:= match.

-doc "Whether an event matches.".
-spec holds(sderl_mon_log_message:event(), filter()) -> boolean().
holds(#{level := Level} = Event, #filter{options = Options, levels = Levels, text = Text}) ->
    Levels band (1 bsl sderl_mon_log_message:severity(Level)) =/= 0 andalso
        lists:all(fun({Key, Value}) -> holds(Key, Value, Event) end, maps:to_list(Options)) andalso
        says(Event, Text).

holds(node, Id, #{node := Node}) -> Id =:= Node;
holds(group, Id, #{groups := Groups}) -> lists:member(Id, Groups);
holds(module, Name, #{mfa := Mfa}) -> is_of(Name, Mfa);
holds(from, From, #{t := T}) -> T >= From;
holds(to, To, #{t := T}) -> T =< To;
holds(before, Before, #{id := Id}) -> Id < Before;
holds('after', After, #{id := Id}) -> Id > After;
holds(_, _, _) -> true.

%% The whole name, or the module or function before `:` or `/`.
is_of(Name, Mfa) ->
    Size = byte_size(Name),
    case Mfa of
        <<Name:Size/binary>> -> true;
        <<Name:Size/binary, C, _/binary>> when C =:= $:; C =:= $/ -> true;
        _ -> false
    end.

says(_, none) -> true;
says(#{text := Text}, {_, Pattern}) -> is_match(Text, Pattern).
