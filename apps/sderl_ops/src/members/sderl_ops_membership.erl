%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_membership).
-moduledoc "Whether the service of this virtual machine is one of several, and its folder.".

-export([begin_in/1, is_member/0, folder/0]).

-doc "Makes this virtual machine a member, until it ends.".
-spec begin_in(file:filename()) -> ok.
begin_in(Folder) -> persistent_term:put(?MODULE, Folder).

-spec is_member() -> boolean().
is_member() -> persistent_term:get(?MODULE, none) =/= none.

-doc "The folder of this member.".
-spec folder() -> file:filename().
folder() -> persistent_term:get(?MODULE).
