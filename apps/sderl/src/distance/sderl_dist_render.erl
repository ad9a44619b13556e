%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_render).
-moduledoc false.
%% Writes a tree of distances to a file, as a picture or for Graphviz.

-export([draw/3, is_option/2]).

-doc "Draws the tree that the options have, or else the one that is set.".
-spec draw(file:name_all(), sderl_dist:rendering(), Set :: sderl_dist_tree:t()) ->
    {ok, file:name_all()} | {error, sderl_dist:error()}.
draw(File, Options, Set) ->
    maybe
        {ok, Tree} ?=
            case Options of
                #{network := Network} -> sderl_dist_tree:parse(Network);
                #{} -> {ok, Set}
            end,
        Title = maps:get(title, Options, ""),
        Text =
            case maps:get(format, Options, format(File)) of
                svg -> sderl_dist_svg:draw(sderl_dist_tree:root(Tree), Title);
                dot -> sderl_dist_dot:draw(sderl_dist_tree:root(Tree), Title)
            end,
        ok ?= sderl_dist_file:write(File, unicode:characters_to_binary(Text)),
        {ok, File}
    end.

format(File) ->
    case string:equal(filename:extension(File), ".svg", true) of
        true -> svg;
        false -> dot
    end.

-doc "Whether this is an option of `t:sderl_dist:rendering/0`.".
-spec is_option(Key :: term(), Value :: term()) -> boolean().
is_option(format, Format) -> Format =:= dot orelse Format =:= svg;
is_option(network, _) -> true;
is_option(title, Title) ->
    try unicode:characters_to_list(Title) of
        Text when is_list(Text) -> lists:all(fun(C) -> C >= 32 end, Text);
        _ -> false
    catch
        error:badarg -> false
    end;
is_option(_, _) -> false.
