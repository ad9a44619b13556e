%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_template).
-moduledoc """
Texts with variables: `{{node}}` stands for the name of the instance's node. Braces around anything
but one word of small letters and `_` are plain text.
""".

-export([variables/0, used/1, render/2]).
-export_type([variables/0]).

-doc "What each variable stands for, by name.".
-type variables() :: #{binary() => iodata()}.

-doc """
| variable | stands for |
|---|---|
| `node` | the Erlang node, `web3@10.0.0.1` |
| `id`, `family`, `index` | of the instance: `web3`, `web`, `3` |
| `host`, `address` | of the machine: its name and its address |
| `cluster` | the cluster's name |
| `state_dir`, `log_dir`, `home` | the instance's folders; the state stays when it is laid out anew |
| `release_dir` | where its release is unpacked |
""".
-spec variables() -> [binary(), ...].
variables() ->
    [~"node", ~"id", ~"family", ~"index", ~"host", ~"address", ~"cluster", ~"state_dir",
     ~"log_dir", ~"home", ~"release_dir"].

-doc "The names of the variables in a text, known or not, each once.".
-spec used(binary()) -> [binary()].
used(Text) -> lists:usort([Name || {variable, Name} <- parts(Text)]).

-doc "The text with values in place of the variables; one without a value stays as it is.".
-spec render(binary(), variables()) -> binary().
render(Text, Values) ->
    iolist_to_binary([render_part(Part, Values) || Part <- parts(Text)]).

render_part({variable, Name}, Values) when is_map_key(Name, Values) -> map_get(Name, Values);
render_part({variable, Name}, _) -> [~"{{", Name, ~"}}"];
render_part(Text, _) -> Text.

%% Pieces of text, with a variable between each two.
parts(Text) ->
    lists:append([
        case Part of
            [Plain] -> [Plain];
            [Plain, Name] -> [Plain, {variable, Name}]
        end
     || Part <- re:split(Text, "\\{\\{([a-z_]+)\\}\\}", [group])
    ]).
