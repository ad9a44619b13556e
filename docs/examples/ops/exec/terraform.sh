#!/bin/sh
# Makes hosts for bin/sderl ops by Terraform (or OpenTofu: TERRAFORM=tofu). Needs jq and flock.
#
# usage: terraform.sh MODULE
#
# MODULE is the folder of a root module. It has a variable `hosts`, a map from the names of hosts to
# what the file says of their domain (domain, region, rack, labels), makes one machine for each with
# for_each, and has an output `hosts`, a map from these names to objects with address and, where
# they are known, port, user and host_key:
#
#     variable "cluster" { type = string }
#     variable "hosts"   { type = map(any) }
#     resource "hcloud_server" "host" {
#       for_each = var.hosts
#       name     = "${var.cluster}-${each.key}"
#       ...
#     }
#     output "hosts" {
#       value = { for name, it in hcloud_server.host : name => { address = it.ipv4_address } }
#     }
#
# The map of the hosts that are wanted is in CLUSTER.tfvars.json beside the state of that cluster,
# and is changed before Terraform is run: what was cut off is done by the next request.
set -eu
module=$1
cd "$module"
read -r request
ask() { printf '%s' "$request" | jq -r "$1"; }
id=$(ask .id)
cluster=$(ask .cluster)
vars=$cluster.tfvars.json
terraform=${TERRAFORM:-terraform}

# What Terraform writes is no line of ours; its last words are the reason.
fail() {
    jq -nc --arg id "$id" --arg error "$1" '{id: $id, error: $error}'
    exit 0
}
run() { "$terraform" "$@" >"$cluster.log" 2>&1 || fail "$terraform $1: $(grep -v '^$' "$cluster.log" | tail -n 1)"; }

# One at a time: a state has one writer.
exec 9>"$cluster.lock"
flock 9
[ -f "$vars" ] || jq -nc --arg cluster "$cluster" '{cluster: $cluster, hosts: {}}' >"$vars"
[ -d .terraform ] || run init -input=false -no-color

change() {
    jq -c --argjson request "$request" "$1" "$vars" >"$vars.part"
    mv "$vars.part" "$vars"
    run apply -input=false -no-color -auto-approve "-state=$cluster.tfstate" "-var-file=$vars"
}
case $(ask .do) in
list) only='true' ;;
create)
    # shellcheck disable=SC2016
    change '.hosts += ([$request.hosts[] | {(.): ($request | {domain, region, rack, labels})}] | add)'
    # shellcheck disable=SC2016
    only='$request.hosts | index($name)'
    ;;
delete)
    # shellcheck disable=SC2016
    change 'reduce $request.hosts[] as $name (.; del(.hosts[$name]))'
    only='false'
    ;;
*) fail "this program lists, creates and deletes" ;;
esac
"$terraform" output -json "-state=$cluster.tfstate" >"$cluster.out" 2>"$cluster.log" ||
    fail "$terraform output: $(tail -n 1 "$cluster.log")"
jq -c --argjson request "$request" --arg id "$id" "{id: \$id, hosts: [
    (.hosts.value // {}) | to_entries[] | .key as \$name | select($only)
    | {name: \$name, state: \"running\"} + (.value | with_entries(select(.value != null)))]}" \
    "$cluster.out"
