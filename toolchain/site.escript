#!/usr/bin/env escript
%% The steps of toolchain/docs that are not ExDoc's: lays the pages out as the site has them, picks
%% the modules, and checks the links.
-mode(compile).

main(["prepare", Root, Work]) -> prepare(Root, Work);
main(["modules", Root, Work]) -> modules(Root, Work);
main(["check", Site, Log]) -> check(Site, Log).

%% ---------------------------------------------------------------- the pages

%% On the site all pages are in one folder, and their links have to lead there. A link into the tree
%% that leads to no page becomes a link to a copy of the file, one to an example a link to a page
%% with all of its files.
prepare(Root, Work) ->
    %% What each application is made of is beside its sources.
    Sections = sections(Root) ++
        [{~"Applications", filelib:wildcard("apps/*/README.md", Root) ++ ["web/README.md"]}],
    Listed = lists:append([Pages || {_, Pages} <- Sections]),
    There = ["docs/" ++ P || P <- filelib:wildcard("*.md", join(Root, "docs"))],
    Unlisted = There -- ["docs/README.md" | Listed],
    Unlisted =:= [] orelse stop(["docs/README.md does not list ", lists:join(", ", Unlisted)]),
    Examples = [D || D <- filelib:wildcard("docs/examples/*", Root), filelib:is_dir(join(Root, D))],
    Pages = ["README.md", "docs/README.md" | Listed],
    Texts = #{P => read(join(Root, P)) || P <- Pages},
    Site = #{
        root => Root,
        copies => join(Work, "files"),
        examples => Examples,
        headings => #{P => headings(Text) || P := Text <- Texts}
    },
    Source = join(Work, "source"),
    [ok = delete(Folder) || Folder <- [Source, join(Work, "files")]],
    ok = filelib:ensure_path(Source),
    ok = filelib:ensure_path(join(Work, "files")),
    {Rewritten, Broken} = lists:unzip([rewrite(P, maps:get(P, Texts), Site) || P <- Pages]),
    case lists:append(Broken) of
        [] -> ok;
        Found -> stop([["broken links:\n"], [["  ", P, ": ", L, "\n"] || {P, L} <- Found]])
    end,
    [write(join(Source, staged(P)), Text) || {P, Text} <- lists:zip(Pages, Rewritten)],
    [write(join(Source, example_page(D)), example(Root, D)) || D <- Examples],
    {ok, Modules} = file:consult(join(Root, "docs/site.config")),
    write(join(Work, "site.config"), config(Root, Work, Sections, Examples, Modules)),
    write(join(Work, "version"), version(Root)).

%% The sections of docs/README.md with the pages that they list, as paths in the tree.
sections(Root) ->
    Lines = binary:split(read(join(Root, "docs/README.md")), ~"\n", [global]),
    section(Lines, []).

section([], Sections) ->
    [{Title, lists:reverse(Pages)} || {Title, Pages} <- lists:reverse(Sections), Pages =/= []];
section([<<"## ", Title/binary>> | Lines], Sections) ->
    section(Lines, [{Title, []} | Sections]);
section([<<"| [", _/binary>> = Row | Lines], [{Title, Pages} | Sections]) ->
    {match, [Target]} = re:run(Row, "\\]\\(([^)#]+)", [{capture, all_but_first, list}]),
    section(Lines, [{Title, [resolve("docs/README.md", Target) | Pages]} | Sections]);
section([_ | Lines], Sections) ->
    section(Lines, Sections).

config(Root, Work, Sections, Examples, Modules) ->
    Groups = [{Title, [bin(staged(P)) || P <- Pages]} || {Title, Pages} <- Sections],
    ExamplePages = [bin(example_page(D)) || D <- Examples],
    Extras = [~"README.md", ~"documents.md"]
        ++ lists:append([Pages || {_, Pages} <- Groups])
        ++ ExamplePages,
    Terms = [
        {main, ~"readme"},
        {extras, Extras},
        {groups_for_extras, Groups ++ [{~"Examples", ExamplePages}]},
        {groups_for_modules, Modules},
        {assets, #{bin(join(Root, "docs/img")) => ~"img", bin(join(Work, "files")) => ~"files"}},
        {api_reference, true}
    ],
    [io_lib:format("~tp.~n", [Term]) || Term <- Terms].

version(Root) ->
    File = join(Root, "apps/sderl/src/sderl.app.src"),
    {ok, [{application, sderl, Properties}]} = file:consult(File),
    proplists:get_value(vsn, Properties).

staged("README.md") -> "README.md";
staged("docs/README.md") -> "documents.md";
staged("spec/README.md") -> "specification.md";
staged("apps/sderl/INTERNALS.md") -> "library.md";
staged("web/README.md") -> "front-end.md";
%% (A page that is called as a module would stand in the place of its manual.)
staged("apps/" ++ Path) -> "app-" ++ hd(filename:split(Path)) ++ ".md";
staged(Page) -> filename:basename(Page).

example_page(Folder) -> "example-" ++ filename:basename(Folder) ++ ".md".

example(Root, Folder) ->
    Path = join(Root, Folder),
    Files = [F || F <- filelib:wildcard("**", Path), filelib:is_regular(join(Path, F))],
    [
        ["# Example: ", filename:basename(Folder), "\n\nThe files of `", Folder, "`.\n"],
        [["\n## ", F, "\n\n```", language(F), "\n", read(join(Path, F)), "```\n"] || F <- Files]
    ].

language(File) ->
    case filename:extension(File) of
        Ext when Ext =:= ".ex"; Ext =:= ".exs" -> "elixir";
        Ext when Ext =:= ".erl"; Ext =:= ".config" -> "erlang";
        ".yaml" -> "yaml";
        _ -> "text"
    end.

%% ---------------------------------------------------------------- links in Markdown

%% A page with its links as the site has them, and the links that lead nowhere.
rewrite(Page, Text, Site) ->
    Parts = re:split(Text, "(^```.*?^```$|`[^`\n]+`)", [multiline, dotall]),
    {New, Broken} = lists:unzip([part(Part, Page, Site) || Part <- Parts]),
    {New, lists:append(Broken)}.

part(<<"`", _/binary>> = Code, _, _) ->
    {Code, []};
part(Text, Page, Site) ->
    Parts = re:split(Text, "(\\]\\([^)\\s]+\\)|(?:src|srcset)=\"[^\"]+\")"),
    lists:mapfoldl(
        fun(Part, Broken) ->
            case linked(Part) of
                none -> {Part, Broken};
                {Before, Link, After} ->
                    case target(Page, unicode:characters_to_list(Link), Site) of
                        error -> {Part, [{Page, Link} | Broken]};
                        New -> {[Before, New, After], Broken}
                    end
            end
        end,
        [],
        Parts
    ).

linked(<<"](", Rest/binary>>) -> {~"](", but_the_last(Rest), ~")"};
linked(<<"src=\"", Rest/binary>>) -> {~"src=\"", but_the_last(Rest), ~"\""};
linked(<<"srcset=\"", Rest/binary>>) -> {~"srcset=\"", but_the_last(Rest), ~"\""};
linked(_) -> none.

but_the_last(Text) -> binary:part(Text, 0, byte_size(Text) - 1).

target(Page, Link, Site) ->
    #{root := Root, examples := Examples, headings := Headings} = Site,
    {Path, Anchor} = split_anchor(Link),
    File = case Path of "" -> Page; _ -> resolve(Page, Path) end,
    IsExample = [D || D <- Examples, D =:= File orelse lists:prefix(D ++ "/", File)],
    IsFile = filelib:is_regular(join(Root, File)),
    case IsExample of
        _ when is_map_key(File, Headings) -> page(File, Path, Anchor, Site);
        [File] -> example_page(File);
        [Folder] when IsFile ->
            Inside = lists:nthtail(length(Folder) + 1, File),
            [example_page(Folder), "#", site_anchor(Inside)];
        _ ->
            case {string:find(Link, ":"), File} of
                {Found, _} when Found =/= nomatch -> Link;
                {_, "docs/img/" ++ Name} when IsFile -> ["img/", Name];
                _ when IsFile -> copy(File, Site);
                _ -> error
            end
    end.

page(File, Path, Anchor, #{headings := Headings}) ->
    Start = case Path of "" -> ""; _ -> staged(File) end,
    case {Anchor, maps:get(File, Headings)} of
        {"", _} -> Start;
        {_, #{Anchor := Id}} -> [Start, "#", Id];
        _ -> error
    end.

copy(File, #{root := Root, copies := Copies}) ->
    Name = filename:basename(File) ++ ".txt",
    {ok, _} = file:copy(join(Root, File), join(Copies, Name)),
    ["files/", Name].

split_anchor(Link) ->
    case string:split(Link, "#") of
        [Path, Anchor] -> {Path, Anchor};
        [Path] -> {Path, ""}
    end.

%% Anchors as a code host makes them of headings, with those that ExDoc makes.
headings(Text) ->
    Plain = re:replace(Text, "^```.*?^```$", "", [global, multiline, dotall]),
    case re:run(Plain, "^#+ +(.*)$", [global, multiline, {capture, all_but_first, binary}]) of
        {match, Found} -> #{host_anchor(H) => site_anchor(H) || [H] <- Found};
        nomatch -> #{}
    end.

host_anchor(Heading) ->
    Lower = string:lowercase(unicode:characters_to_list(Heading)),
    lists:flatmap(
        fun($\s) -> "-";
           (C) when C =:= $-; C =:= $_; C >= $0, C =< $9; C >= $a, C =< $z; C > 127 -> [C];
           (_) -> ""
        end,
        Lower
    ).

site_anchor(Heading) ->
    Dashes = re:replace(Heading, "\\W+", "-", [global, unicode, ucp, {return, list}]),
    string:lowercase(string:trim(Dashes, both, "-")).

%% ---------------------------------------------------------------- modules

%% The modules of docs/site.config, wherever they are built, in one folder for ExDoc.
modules(Root, Work) ->
    {ok, Groups} = file:consult(join(Root, "docs/site.config")),
    Ebin = join(Work, "ebin"),
    ok = delete(Ebin),
    ok = filelib:ensure_path(Ebin),
    [pick(Root, Module, Ebin) || {_, Modules} <- Groups, Module <- Modules],
    %% ExDoc asks which application it describes.
    App = "sderl.app",
    {ok, _} = file:copy(join([Root, "_build/default/lib/sderl/ebin", App]), join(Ebin, App)).

pick(Root, Module, Ebin) ->
    Beam = atom_to_list(Module) ++ ".beam",
    case filelib:wildcard("_build/default/lib/*/ebin/" ++ Beam, Root) of
        [File] -> {ok, _} = file:copy(join(Root, File), join(Ebin, Beam));
        Found -> stop(io_lib:format("docs/site.config: ~ts is built in ~tp", [Module, Found]))
    end.

%% ---------------------------------------------------------------- links in the site

%% Every link within the site leads to a file that is there, and to an anchor that it has, and ExDoc
%% found every module, function and type that the texts name.
check(Site, Log) ->
    Unknown = [{W, Place} || {W, Place} <- warnings(read(Log)), not is_hidden_type(W)],
    Unknown =:= [] orelse
        stop(["warnings of ExDoc:\n", [["  ", Place, ": ", W, "\n"] || {W, Place} <- Unknown]]),
    Files = filelib:wildcard("**/*.html", Site),
    Texts = #{F => read(join(Site, F)) || F <- Files},
    Ids = #{F => matches(T, "\\s(?:id|name)=\"([^\"]+)\"") || F := T <- Texts},
    Broken = [
        {F, L}
     || F := T <- Texts,
        L <- lists:usort(matches(T, "\\s(?:href|src|srcset)=\"([^\"]+)\"")),
        not leads_somewhere(Site, F, unescape(L), Ids)
    ],
    Broken =:= [] orelse
        stop([["broken links of the site:\n"], [["  ", F, ": ", L, "\n"] || {F, L} <- Broken]]),
    io:format("~b pages, every link leads somewhere~n", [length(Files)]).

%% What ExDoc complains of, each with its place in the sources.
warnings(Log) ->
    Lines = binary:split(Log, ~"\n", [global]),
    pair([string:trim(unicode:characters_to_list(L)) || L <- Lines]).

pair(["warning: " ++ Warning | Lines]) ->
    Place = case [P || "└─ " ++ P <- Lines] of [First | _] -> First; [] -> "" end,
    [{Warning, Place} | pair(Lines)];
pair([_ | Lines]) ->
    pair(Lines);
pair([]) ->
    [].

%% The type of an argument may be that of a module without a manual: its name is shown, not linked.
is_hidden_type(Warning) ->
    re:run(Warning, "^(spec|type|callback) references type") =/= nomatch.

leads_somewhere(Site, From, Link, Ids) ->
    {Path, Anchor} = split_anchor(Link),
    File = case Path of "" -> From; _ -> resolve(From, uri_string:percent_decode(Path)) end,
    case string:find(Path, ":") of
        nomatch when Anchor =:= "" -> filelib:is_file(join(Site, File));
        nomatch ->
            lists:member(uri_string:percent_decode(Anchor), decoded(maps:get(File, Ids, [])));
        _ -> true
    end.

decoded(Ids) -> [uri_string:percent_decode(unescape(Id)) || Id <- Ids].

unescape(Text) ->
    lists:foldl(
        fun({Entity, Sign}, T) -> lists:flatten(string:replace(T, Entity, Sign, all)) end,
        Text,
        [{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}]
    ).

matches(Text, Regexp) ->
    case re:run(Text, Regexp, [global, {capture, all_but_first, list}]) of
        {match, Found} -> [F || [F] <- Found];
        nomatch -> []
    end.

%% ---------------------------------------------------------------- files

%% A link on a page, as a path in the tree.
resolve(Page, Link) ->
    Parts = filename:split(filename:dirname(Page)) ++ filename:split(Link),
    Steps = lists:foldl(
        fun("..", [_ | Up]) -> Up;
           (".", Path) -> Path;
           (Part, Path) -> [Part | Path]
        end,
        [],
        Parts
    ),
    case Steps of [] -> ""; _ -> filename:join(lists:reverse(Steps)) end.

join(A, B) -> filename:join(A, B).
join(Parts) -> filename:join(Parts).
bin(Text) -> unicode:characters_to_binary(Text).

read(File) ->
    {ok, Text} = file:read_file(File),
    Text.

write(File, Text) -> ok = file:write_file(File, unicode:characters_to_binary(Text)).

delete(Folder) ->
    case file:del_dir_r(Folder) of
        {error, enoent} -> ok;
        Result -> Result
    end.

stop(Why) ->
    Text = string:trim(unicode:characters_to_list(Why), trailing),
    io:format(standard_error, "docs: ~ts~n", [Text]),
    halt(1).
