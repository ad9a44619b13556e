%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_audit).
-moduledoc """
Tells whoever keeps an audit log of each request that was to change something: the setting `audit`,
a function of one entry. It may fail; the request does not.
""".

-export([note/2, who/2]).
-export_type([entry/0, who/0, hook/0]).

-doc """
`token` is the token's id and `name` its name. Those who use the dashboard's own token, `main`, say
what they are called, so that only the id is certain then. `from` is an address.
""".
-type who() :: #{
    kind := token, token := binary(), name := binary(), role := binary(), from := binary()
}.

-doc "`what` is the operation, `args` its arguments without the text of any token.".
-type entry() :: #{
    who := who(),
    what := binary(),
    result := ok | refused | failed,
    args := map(),
    detail := unicode:chardata(),
    ms := non_neg_integer()
}.
-type hook() :: none | fun((entry()) -> term()).

-doc "Somebody with a token at an address.".
-spec who(#{id := binary(), name := binary(), role := atom(), atom() => term()},
          From :: binary()) -> who().
who(#{id := Id, name := Name, role := Role}, From) ->
    #{kind => token, token => Id, name => Name, role => atom_to_binary(Role), from => From}.

-doc "Tells of a request that was answered.".
-spec note(entry(), hook()) -> ok.
note(_, none) -> ok;
note(Entry, Hook) ->
    try Hook(Entry) of
        {error, Why} -> failed(Why);
        _ -> ok
    catch
        Class:Reason -> failed({Class, Reason})
    end.

failed(Why) ->
    sderl_web_notes:note(failed, io_lib:format("the audit log could not be written: ~0tP",
                                               [Why, 12])).
