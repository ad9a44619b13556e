# Each target installs the toolchain first where the machine lacks it.
with := toolchain/env

.PHONY: help build web demo test test-long test-otp27 check layout xref dialyzer check-web spec docs bench clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## compile everything
	@$(with) rebar3 compile

web: ## the dashboard's pages (needs Node.js; fetched on Debian)
	@toolchain/web

demo: ## a cluster on this machine, with and without groups (ARGS="--nodes 20")
	@bin/sderl demo $(ARGS)

test: ## everything that finishes in minutes (APP=sderl_web for one app)
	@toolchain/test $(APP:%=--app %)

test-long: ## all tests at full length, about two hours on 2 cores
	@toolchain/test --long $(APP:%=--app %)

test-otp27: ## the library's tests on the oldest supported OTP
	@toolchain/test --otp 27 $(APP:%=--app %)

check: layout xref dialyzer check-web docs test ## layout, xref, dialyzer, the dashboard's types, links, and the tests

layout: ## no line of Erlang has more than 100 columns
	@$(with) escript toolchain/columns

xref:
	@$(with) rebar3 xref

dialyzer:
	@$(with) rebar3 dialyzer

check-web:
	@toolchain/web --run npm run --silent check

spec: ## the specification of the group protocol, by TLC (needs Java; ARGS=--long for hours)
	@spec/check $(ARGS)

docs: ## the site: all pages and the manuals of the public modules (needs Elixir; ExDoc fetched on Debian)
	@toolchain/docs || [ $$? -eq 77 ]

bench: ## the standard benchmarks, a quarter of an hour (ARGS="NAME options" for one; ARGS=list)
	@bin/sderl bench $(or $(ARGS),standard)

clean: ## remove what was built, and keep the toolchain
	@rm -rf _build _build-otp27 apps/sderl_web/priv/www
