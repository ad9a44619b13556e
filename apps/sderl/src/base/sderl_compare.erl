%% SPDX-License-Identifier: Apache-2.0
-module(sderl_compare).
-moduledoc false.
%% The operators of the published predicates, on attributes as on distances: any two terms compare,
%% in the order of terms.

-export([holds/3, is_operator/1]).
-export_type([operator/0]).

-type operator() :: eq | ne | lt | le | gt | ge.

-spec holds(operator(), term(), term()) -> boolean().
holds(eq, A, B) -> A == B;
holds(ne, A, B) -> A /= B;
holds(lt, A, B) -> A < B;
holds(le, A, B) -> A =< B;
holds(gt, A, B) -> A > B;
holds(ge, A, B) -> A >= B.

-spec is_operator(term()) -> boolean().
is_operator(Op) -> lists:member(Op, [eq, ne, lt, le, gt, ge]).
